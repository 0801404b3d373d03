"""Names that differ in their indices, as one."""

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.name_folding import (
    MIN_FOR_ODD,
    ODD,
    alike,
    fold_names,
    name_by_indices,
    name_of_all,
    odd_one,
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"h.3.attn"}, "h.3.attn"),
        ({f"h.{block}.attn" for block in range(12)}, "h.0-11.attn"),
        ({f"h.{block}.attn" for block in range(4)}, "h.0-3.attn"),
        ({"h.0.attn", "h.5.attn"}, "h.0,5.attn"),
        ({f"h.{block}.attn" for block in range(0, 12, 2)}, "h.0,2..10.attn"),
        ({f"h.{block}.mlp.{layer}" for block in range(12) for layer in (0, 2)}, "h.0-11.mlp.0,2"),
        ({f"h.{block}.mlp.{layer}" for block in range(12) for layer in (0, 1, 2)}, "h.0-11.mlp.0-2"),
        ({f"h.{block}.mlp.1" for block in (0, 1)}, "h.0-1.mlp.1"),
    ],
)
def test_indices_are_named(names: set[str], expected: str) -> None:
    """As ranges, and one by one where they are few."""
    assert name_by_indices(names) == expected


def test_names_that_differ_in_their_indices_are_one() -> None:
    """With those it stands for; a name of another kind stays alone."""
    names = [f"h.{block}.attn.weight" for block in range(12)]

    assert list(fold_names([*names, "head.weight"])) == [
        ("h.0-11.attn.weight", names), ("head.weight", ["head.weight"])
    ]  # fmt: skip
    assert list(fold_names(["s.0.0.a", "s.0.1.a"])) == [("s.0.0-1.a", ["s.0.0.a", "s.0.1.a"])]
    assert list(fold_names(["h.0.a.1", "h.1.a.2"])) == [("h.0-1.a.1-2", ["h.0.a.1", "h.1.a.2"])]


def test_rows_of_equal_blocks_go_together() -> None:
    """Rows that say the same, in modules whose names differ in an index; each group in the place of its first."""
    rows = [("h.0.attn", 4), ("head", 4), ("h.1.attn", 4), ("h.2.attn", 5), (None, 4)]

    groups = list(alike(rows, lambda row: (row[0],), lambda row: row[1]))

    assert groups == [[rows[0], rows[2]], [rows[1]], [rows[3]], [rows[4]]]
    assert [name_of_all(name for name, _ in group) for group in groups] == ["h.0-1.attn", "head", "h.2.attn", None]


@given(st.lists(st.integers(0, 40), max_size=12))
def test_the_odd_one_is_measured_by_the_median_of_the_others(values: list[int]) -> None:
    """It is three times as far as that, up or down, and the others are at most half as far from each other."""
    found = odd_one(values)
    factors = [
        value / others if (others := median([*values[:place], *values[place + 1 :]])) else math.inf if value else 1.0
        for place, value in enumerate(values)
        if len(values) > 1
    ]
    distances = [math.inf if factor in (0, math.inf) else abs(math.log(factor)) for factor in factors]

    if len(values) < MIN_FOR_ODD or max(distances) < math.log(ODD):
        assert found is None
    elif found is not None:
        rest = sorted([*values[: found[0]], *values[found[0] + 1 :]])

        assert found[1] == factors[found[0]]
        assert distances[found[0]] == max(distances)
        assert rest[0] == rest[-1] or math.log(rest[-1] / rest[0]) <= max(distances) / 2


def test_where_numbers_fall_from_block_to_block_none_is_odd() -> None:
    """Nor where two are far from the others."""
    assert odd_one([10.0**-place for place in range(12)]) is None
    assert odd_one([1, 1, 1, 1, 1, 9, 1, 9]) is None
    assert odd_one([1, 1.2, 0.9, 9, 1]) == (3, 9.0)
