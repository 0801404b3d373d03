"""Parameters of equal blocks in one row."""

import pytest
from factories import gradient_stats as stats
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.gradients.folded import FoldedRow, as_deep_as_fits, folded_flow, folded_parameters
from gradinspect.analyses.gradients.observed import FlowRow, ParameterRow
from gradinspect.graph import GradientStats, Graph

NAN = float("nan")


def network(*shapes: int | tuple[int, ...]) -> Graph:
    """A leaf of each size, below one node."""
    sizes = [shape if isinstance(shape, tuple) else (shape,) for shape in shapes]
    leaves = [leaf(f"h.{place}.weight", *shape) for place, shape in enumerate(sizes)]
    return graph(op("MulBackward0", *range(1, len(leaves) + 1)), *leaves)


def rows(*found: GradientStats | None) -> list[ParameterRow]:
    """A row of each leaf."""
    return [
        ParameterRow(node=place + 1, name=f"h.{place}.weight", stats=one, weight_norm=1.0, num_added=1)
        for place, one in enumerate(found)
    ]


def names(graph: Graph, *found: GradientStats | None) -> list[str]:
    """The names of the rows."""
    return [folded.name for folded in folded_parameters(graph, rows(*found))]


def test_equal_blocks_are_one_row() -> None:
    """From two on, whatever their sizes; never a bias with a weight."""
    one = stats(1.0)

    assert names(network(4, 4, 4, 4), one, one, one, one) == ["h.0-3.weight"]
    assert names(network(4, 4, 8, 4), one, one, one, one) == ["h.0-3.weight"]
    assert len(names(network((4,), (4, 4)), one, one)) == 2
    assert names(network(4, 4), one, one) == ["h.0-1.weight"]


@pytest.mark.parametrize("other", [None, stats(NAN, bad=1), stats(0.0)])
def test_what_is_missing_or_broken_is_never_in_a_row_with_what_is_not(other: GradientStats | None) -> None:
    """It would be overlooked there."""
    one = stats(1.0)

    assert names(network(4, 4, 4, 4), one, other, one, one) == ["h.0,2,3.weight", "h.1.weight"]


def test_other_numbers_of_broken_elements_are_apart() -> None:
    """A row says one number."""
    assert names(network(4, 4, 4), stats(NAN, bad=2), stats(NAN, bad=2), stats(NAN, bad=8)) == [
        "h.0-1.weight",
        "h.2.weight",
    ]


@pytest.mark.parametrize(
    ("norms", "expected"),
    [
        ((1.0, 1.1, 3.1, 0.9), ("h.2.weight", 3.1)),
        ((1.0, 1.0, 0.0, 1.0), ("h.2.weight", 0.0)),
        ((1.0, 2.0, 1.5, 0.9), None),
        ((0.0, 0.0, 0.0, 0.0), None),
    ],
)
def test_the_odd_one_out(norms: tuple[float, ...], expected: tuple[str, float] | None) -> None:
    """At least three times the median of the others, or a third of it."""
    folded = FoldedRow(name="h", rows=tuple(rows(*map(stats, norms))))
    found = folded.odd_one

    assert (found and (found[0].name, found[1])) == expected


def flow(*modules: tuple[str, float]) -> list[FlowRow]:
    """Rows of modules, as deep as their names have parts."""
    return [FlowRow(path=path, class_name="Block", call=1, depth=path.count("."), node=0, stats=stats(norm))
            for path, norm in modules]  # fmt: skip


def paths(rows: list[FlowRow]) -> list[list[str]]:
    """The paths in each row."""
    return [[row.path for row in folded.rows] for folded in folded_flow(rows)]


def test_what_is_inside_of_folded_blocks_stays_below_them() -> None:
    """Though another module ran between these blocks, and they have other numbers of parts."""
    rows = flow(
        ("b2", 1.0), ("b2.l1", 1.0), ("b2.l1.x", 1.0), ("b2.l2", 1.0), ("b2.l2.x", 1.0),
        ("t", 1.0), ("t.x", 1.0), ("b1", 1.0), ("b1.l1", 1.0), ("b1.l1.x", 1.0),
    )  # fmt: skip

    assert paths(rows) == [
        ["b2", "b1"], ["b2.l1", "b2.l2"], ["b2.l1.x", "b2.l2.x"], ["b1.l1"], ["b1.l1.x"], ["t"], ["t.x"],
    ]  # fmt: skip


def test_what_is_inside_of_folded_blocks_is_is_folded_and_else_stays_below_its_module() -> None:
    """A block that has more than the others is not equal to them, as in `memory` and `trace`."""
    assert paths(flow(("c", 1.0), ("c.a", 1.0), ("b", 1.0), ("b.a", 1.0), ("a", 1.0), ("a.a", 1.0))) == [
        ["c"], ["c.a"], ["b"], ["b.a"], ["a"], ["a.a"],
    ]  # fmt: skip
    assert paths(flow(("h2", 1.0), ("h2.a", 1.0), ("h1", 1.0), ("h1.a", 1.0))) == [["h2", "h1"], ["h2.a", "h1.a"]]
    assert paths(flow(("2", 1.0), ("2.a", 1.0), ("1", 1.0), ("1.b", 1.0), ("1.a", 1.0), ("0", 1.0), ("0.a", 1.0))) == [
        ["2", "0"], ["2.a", "0.a"], ["1"], ["1.b"], ["1.a"],
    ]  # fmt: skip


def test_what_is_deep_inside_counts() -> None:
    """A stage with a shortcut somewhere inside is not one without, as in `memory` and `fit`."""
    stages = [
        row for place in (3, 2, 1) for row in ((f"s{place}", 1.0), (f"s{place}.u", 1.0), (f"s{place}.u.conv", 1.0))
    ]
    stages[3:3] = [("s3.u.shortcut", 1.0)]
    stages[7:7] = [("s2.u.shortcut", 1.0)]

    assert paths(flow(*stages)) == [
        ["s3", "s2"], ["s3.u", "s2.u"], ["s3.u.conv", "s2.u.conv"], ["s3.u.shortcut", "s2.u.shortcut"],
        ["s1"], ["s1.u"], ["s1.u.conv"],
    ]  # fmt: skip


def test_blocks_of_one_class_around_different_modules_stay_apart() -> None:
    """`fn` is an Attention in one half of the blocks, and an MLP in the other."""
    found = flow(*((f"{place}{name}", 1.0) for place in range(6) for name in ("", ".fn")))
    classes = [replace(row, class_name="MLP") if place % 4 == 3 else row for place, row in enumerate(found)]

    assert paths(classes) == [["0", "2", "4"], ["0.fn", "2.fn", "4.fn"], ["1", "3", "5"], ["1.fn", "3.fn", "5.fn"]]


def test_rows_are_as_deep_as_fits() -> None:
    """The outermost are shown, however many they are."""
    folded = folded_flow(flow(("2", 1.0), ("2.a", 1.0), ("2.a.b", 1.0), ("head", 1.0)))

    assert [len(as_deep_as_fits(folded, most)) for most in (1, 2, 3, 4)] == [2, 2, 3, 4]


def test_a_dead_block_is_not_in_a_row_with_live_ones() -> None:
    """Its zeros would be overlooked there."""
    assert paths(flow(("4", 1.0), ("3", 1.0), ("2", 0.0), ("1", 1.0))) == [["4", "3", "1"], ["2"]]


def test_blocks_with_other_numbers_of_nan_stay_apart() -> None:
    """There is no range that would say where they began."""
    rows = [
        replace(row, stats=replace(row.stats, num_nonfinite=count))
        for row, count in zip(flow(("2", 1.0), ("1", 1.0), ("0", 1.0)), (12, 48, 48), strict=True)
    ]

    assert paths(rows) == [["2"], ["1", "0"]]
