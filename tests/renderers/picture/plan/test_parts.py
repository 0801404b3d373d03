"""Boxes, and where scopes begin and end."""

from gradinspect.analyses.structure.folding import Scope
from gradinspect.renderers.picture.plan.parts import deepest_level


def test_how_deeply_scopes_are_nested() -> None:
    """What is in no scope is not nested; scopes beside each other are no deeper than one."""

    def scope(*items: int | Scope) -> Scope:
        return Scope(kind="module", items=items, num_nodes=2, held_bytes=0)

    assert [
        deepest_level(scope(*items))
        for items in ((0, 1), (scope(0, 1), 2), (scope(0, 1), scope(2, 3)), (scope(scope(0, 1), 2), 3))
    ] == [0, 1, 1, 2]
