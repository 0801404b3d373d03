"""Names that differ in their indices, as one."""

import math
import re
from itertools import chain, product
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradinspect.analyses.structure.name_folding import (
    MAX_COLUMNS,
    MAX_INDICES,
    MIN_FOR_ODD,
    ODD,
    alike,
    fold_name,
    fold_names,
    name_by_indices,
    name_of_all,
    odd_one,
    with_indices_of,
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
        ({f"up{level}" for level in range(1, 5)}, "up1-4"),
        ({f"h.{block}" for block in (0, 1, 2, 3, 7, 9, 10, 11)}, "h.0-3,7,9-11"),
        ({f"h.{block}" for block in (0, 1, 3)}, "h.0,1,3"),
        ({f"h.{block}" for block in (9, 10)}, "h.9-10"),
        ({f"h.{block}" for block in (0, 3, 5, 8, 11, 13)}, "h.0,3,5,8, h.11,13"),
        ({"layer1.0.conv1", "layer1.1.conv1", "layer2.0.conv1"}, "layer1.0-1.conv1, layer2.0.conv1"),
        ({*(f"layer{place}.norm2" for place in range(1, 6)), "layer3.norm1"}, "layer1-5.norm2, layer3.norm1"),
        (
            {f"layer{stage}.{block}.conv{at}" for stage in (1, 2) for block in (0, 1) for at in (1, 2)},
            "layer1-2.0-1.conv1-2",
        ),
    ],
)
def test_indices_are_named(names: set[str], expected: str) -> None:
    """As ranges, and one by one where they are few; no name covers what was not given."""
    assert name_by_indices(names) == expected


def test_names_that_differ_in_their_indices_are_one() -> None:
    """With those it stands for; a name of another kind stays alone."""
    names = [f"h.{block}.attn.weight" for block in range(12)]

    assert list(fold_names([*names, "head.weight"])) == [
        ("h.0-11.attn.weight", names), ("head.weight", ["head.weight"])
    ]  # fmt: skip
    assert list(fold_names(["s.0.0.a", "s.0.1.a"])) == [("s.0.0-1.a", ["s.0.0.a", "s.0.1.a"])]
    assert list(fold_names(["h.0.a.1", "h.1.a.2"])) == [("h.0.a.1", ["h.0.a.1"]), ("h.1.a.2", ["h.1.a.2"])]
    assert list(fold_names(["up1", "down1", "up2", "up02"])) == [
        ("up1-2", ["up1", "up2"]), ("down1", ["down1"]), ("up02", ["up02"])
    ]  # fmt: skip


def test_rows_of_equal_blocks_go_together() -> None:
    """Rows that say the same, in modules whose names differ in an index; each group in the place of its first."""
    rows = [("h.0.attn", 4), ("head", 4), ("h.1.attn", 4), ("h.2.attn", 5), (None, 4)]

    groups = list(alike(rows, lambda row: (row[0],), lambda row: row[1]))

    assert groups == [[rows[0], rows[2]], [rows[1]], [rows[3]], [rows[4]]]
    assert [name_of_all(name for name, _ in group) for group in groups] == ["h.0-1.attn", "head", "h.2.attn", None]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["transformer.h.1", "transformer.h.0"], "transformer.h.0-1"),
        (["0", "2", "4"], "0,2,4"),
        (["up1", "up2"], "up1-2"),
        ([f"net.{2 * index}" for index in range(9)], "net.0,2..16"),
        (["h.0", "h.x"], None),
        (["a.0", "b.0"], None),
        (["h.0.1", "h.1.0"], None),
        (["h.0"], None),
        (["h.0", "h.0"], None),
        (["h.²", "h.³"], None),
        (["h.01", "h.1"], None),
    ],
)
def test_one_name_for_just_these(names: list[str], expected: str | None) -> None:
    """None where it would stand for others, or for nothing more than one has."""
    assert fold_name(names) == expected


def test_names_in_a_row_that_count_together_are_one() -> None:
    """The module and its parameter, also if one counts from 1; what counts the other way is no range."""
    together = [(f"h.{block}", f"blocks.{block + 1}.weight") for block in range(3)]
    crossed = [(f"down.{block}", f"up.{2 - block}") for block in range(3)]

    assert list(alike(together, lambda row: row, lambda _: None)) == [together]
    assert list(alike(crossed, lambda row: row, lambda _: None)) == [[row] for row in crossed]


def test_a_fold_takes_no_name_that_another_has() -> None:
    """A key of a ModuleDict may be written as a range is."""
    assert [name for name, _ in fold_names(["up1", "up1-2", "up2"])] == ["up1", "up1-2", "up2"]


def test_names_that_differ_in_more_numbers_than_are_read_stay_apart() -> None:
    """However many parts a path has."""
    several = [".".join("ab"[at == place] + str(int(at == place)) for at in range(9)) for place in range(2)]
    many = [".".join(map(str, numbers)) for numbers in product(range(2), repeat=MAX_COLUMNS + 1)]

    assert len(list(fold_names(several))) == 2
    assert len(list(fold_names(many))) == len(many)
    assert [name for name, _ in fold_names(many[: 2**MAX_COLUMNS])] == ["0" + ".0-1" * MAX_COLUMNS]


def test_the_end_of_a_name_gets_the_last_numbers() -> None:
    """Relative to the module that is named above it."""
    names = [f"h.{block}.fc{layer}" for block in range(12) for layer in (1, 2)]

    assert with_indices_of("fc1", names) == "fc1-2"
    assert with_indices_of("h.0.fc1", names) == "h.0-11.fc1-2"


NUMBER = "(?:0|[1-9][0-9]*)"
RANGES = re.compile(rf"^(.*?)(?<!\d)({NUMBER}(?:-{NUMBER})?(?:,{NUMBER}(?:-{NUMBER})?)*(?:\.\.{NUMBER})?)$")


def stands_for(label: str) -> set[str]:
    """Read a folded name as a user does: all combinations of its numbers."""
    return {".".join(parts) for parts in product(*map(part_stands_for, re.split(r"(?<!\.)\.(?!\.)", label)))}


def part_stands_for(part: str) -> list[str]:
    """Read `up1-4`, `0,2`, `0,2..10` or a name."""
    found = RANGES.match(part)
    if found is None:
        return [part]
    stem, numbers = found.groups()
    if ".." in numbers:
        first, second, last = map(int, re.split(r",|\.\.", numbers))
        return [f"{stem}{number}" for number in range(first, last + 1, second - first)]
    ends = [[*map(int, some.split("-"))] for some in numbers.split(",")]
    return [f"{stem}{number}" for some in ends for number in range(some[0], some[-1] + 1)]


PARTS = st.one_of(
    st.integers(0, 12).map(str),
    st.builds("{}{}".format, st.sampled_from(["up", "conv", "layer_", "q2k"]), st.integers(0, 12)),
    st.sampled_from(["h", "attn", "conv01", "weight"]),
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join)
PRODUCTS = st.lists(st.sets(PARTS, min_size=1, max_size=4).map(sorted), min_size=1, max_size=3).map(
    lambda parts: [".".join(name) for name in product(*parts)]
)


@given(st.lists(NAMES, max_size=30) | st.lists(PRODUCTS, max_size=2).map(lambda several: [*chain(*several)]))
def test_a_folded_name_stands_for_exactly_its_members(names: list[str]) -> None:
    """Each given name is in one row, no row covers what is not there, and no two rows have one name."""
    folded = list(fold_names(names))
    labels = [label for label, _ in folded]

    assert sorted(name for _, group in folded for name in group) == sorted(set(names))
    assert len(set(labels)) == len(labels)
    for label, group in folded:
        assert stands_for(label) == set(group)
        assert all(part.count(",") < MAX_INDICES for part in label.split("."))
    assert sorted(labels) == sorted(filter(None, name_by_indices(names).split(", ")))


@given(st.lists(st.tuples(NAMES, st.none() | NAMES, st.booleans()), max_size=20))
def test_each_name_of_a_row_is_exact(rows: list[tuple[str, str | None, bool]]) -> None:
    """Rows that look alike are one, in the place of their first, and all rows are there."""
    groups = list(alike(rows, lambda row: row[:2], lambda row: row[2]))

    assert sorted(map(repr, rows)) == sorted(repr(row) for group in groups for row in group)
    assert [rows.index(group[0]) for group in groups] == sorted(rows.index(group[0]) for group in groups)
    for group in groups:
        assert len({row[2] for row in group}) == 1
        for names in zip(*(row[:2] for row in group), strict=True):
            label = name_of_all(names)

            assert label is None or stands_for(label) == set(names)


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
