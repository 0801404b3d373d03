"""Whether what earlier iterations leave behind grows, also where a program calls backward on several lines in turn."""

import pytest

from gradinspect.analyses.memory.growth import Growth, Iteration


def growth(*calls: tuple[str, int]) -> Growth:
    """Make calls of backward, each with its line and the nodes that are left of earlier ones."""
    return Growth(
        source="train.py",
        asked=len(calls),
        iterations=tuple(
            Iteration(number=number, place=place, live_nodes=old + 9, live_bytes=0, old_nodes=old, old_bytes=100 * old)
            for number, (place, old) in enumerate(calls, 1)
        ),
        holders=(),
    )


@pytest.mark.parametrize(
    ("calls", "grows", "nodes"),
    [
        ([("a:1", 0), ("a:1", 2), ("a:1", 4)], True, 2),
        ([("a:1", 0), ("a:1", 2), ("a:1", 2)], False, 1),
        ([("d:1", 0), ("g:2", 13), ("d:1", 11), ("g:2", 24), ("d:1", 22)], True, 11),
        ([("d:1", 0), ("g:2", 13), ("d:1", 11), ("g:2", 13), ("d:1", 11)], False, 5.5),
        ([("a:1", 0), ("b:2", 3), ("c:3", 6)], True, 3),
    ],
)
def test_each_line_is_compared_with_itself(calls: list[tuple[str, int]], grows: bool, nodes: float) -> None:
    """Of several losses in turn each leaves its own number behind; where each has its own line, all are compared."""
    found = growth(*calls)

    assert found.can_tell
    assert found.grows == grows
    assert found.nodes_per_iteration == nodes
    assert found.bytes_per_iteration == 100 * nodes


@pytest.mark.parametrize("calls", [[], [("a:1", 0)], [("a:1", 0), ("a:1", 2)], [("d:1", 0), ("g:2", 1), ("d:1", 1)]])
def test_with_too_few_calls_nothing_is_known(calls: list[tuple[str, int]]) -> None:
    """The first call has nothing before it."""
    found = growth(*calls)

    assert not found.can_tell
    assert not found.grows
    assert found.nodes_per_iteration >= 0
