"""Names that differ in their indices, as one."""

import pytest

from gradinspect.analyses.structure.name_folding import fold_names, name_together

MODULES = {f"h.{block}.{name}" for block in range(12) for name in ("attn", "mlp.0", "mlp.1", "mlp.2")}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"h.3.attn"}, "h.3.attn"),
        ({f"h.{block}.attn" for block in range(12)}, "h.*.attn"),
        ({f"h.{block}.attn" for block in range(4)}, "h.0-3.attn"),
        ({"h.0.attn", "h.5.attn"}, "h.0,5.attn"),
        ({f"h.{block}.attn" for block in range(0, 12, 2)}, "h.0,2..10.attn"),
        ({f"h.{block}.mlp.{layer}" for block in range(12) for layer in (0, 2)}, "h.*.mlp.0,2"),
        ({f"h.{block}.mlp.{layer}" for block in range(12) for layer in (0, 1, 2)}, "h.*.mlp.*"),
        ({f"h.{block}.mlp.1" for block in (0, 1)}, "h.0-1.mlp.1"),
    ],
)
def test_a_star_stands_for_all(names: set[str], expected: str) -> None:
    """Otherwise the indices are named."""
    assert name_together(names, MODULES) == expected


def test_names_without_their_surroundings() -> None:
    """Each index is named, since nobody says which others there are."""
    names = [f"h.{block}.attn.weight" for block in range(12)]

    assert list(fold_names([*names, "head.weight"])) == [
        ("h.0-11.attn.weight", names), ("head.weight", ["head.weight"])
    ]  # fmt: skip
    assert list(fold_names(["s.0.0.a", "s.0.1.a"])) == [("s.0.0-1.a", ["s.0.0.a", "s.0.1.a"])]
    assert list(fold_names(["h.0.a.1", "h.1.a.2"])) == [("h.0-1.a.1-2", ["h.0.a.1", "h.1.a.2"])]
