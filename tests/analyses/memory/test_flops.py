"""Floating point operations by line and operator."""

from factories import graph, leaf, op
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gradinspect.analyses.memory.flops import CountedFlops, FlopRow, count_flops, left_out
from gradinspect.graph import Frame, Graph
from gradinspect.renderers.data.memory import FLOPS
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.memory.flops import FlopsPage
from gradinspect.units import format_flops


def products() -> Graph:
    """Two products of one line, one of another, and what has no count."""
    return graph(
        replace(op("MmBackward0", 1, frame=0), flops=1000, backward_flops=2000),
        replace(op("MmBackward0", 2, frame=0), flops=1000, backward_flops=2000),
        replace(op("MmBackward0", 3, frame=1), flops=500, backward_flops=500),
        op("ExpBackward0", 4), op("ViewBackward0", 5), leaf("w", 4),
        frames=(Frame(file="a.py", line=3), Frame(file="a.py", line=7)),
    )  # fmt: skip


def test_a_line_has_a_row() -> None:
    """The largest first; views compute nothing, and other nodes without a count are named."""
    counted = count_flops(products())
    page = FlopsPage(width=72)

    assert counted.unknown == {"ExpBackward0": 1}
    assert [line.plain for line in page.table(counted, *left_out(counted.rows, None))] == [
        "FLOPs                        forward    backward     %",
        "MmBackward0  a.py:3  ×2        2.0 k       4.0 k   86%  █████████████▊",
        "MmBackward0  a.py:7              500         500   14%  ██▎",
        "total                          2.5 k       4.5 k",
        "unknown: 1 node (ExpBackward0); torch has no formula for them",
    ]
    assert next(iter(page.table(counted, *left_out(counted.rows, 1)))).plain.startswith("FLOPs")
    assert left_out(counted.rows, 1)[1] == FlopRow(label="1 more", forward=500, backward=500, nodes=(2,))
    assert count_flops(products(), {2, 3}).rows[0].nodes == (2,)
    assert render_table(FLOPS, counted.rows, "csv").splitlines()[1] == "MmBackward0,a.py:3,2000,4000,0 1"


def test_counts_are_written_with_decimal_prefixes() -> None:
    """As is usual for them."""
    assert [format_flops(count) for count in (0, 999, 1000, 999_960, 2_500_000_000, 10**19)] == [
        "0", "999", "1.0 k", "1.0 M", "2.5 G", "10,000.0 P",
    ]  # fmt: skip


@given(st.integers(20, 160), st.booleans(), st.text(max_size=60), st.integers(0, 10**20))
@example(20, True, "00\u0e5c⺀", 0)  # a character that takes two cells, in a sentence that is wrapped
def test_no_line_is_wider_than_asked(width: int, unicode: bool, name: str, count: int) -> None:
    """Whatever a file says."""
    row = FlopRow(label=name, forward=count, backward=0, nodes=(0, 1))
    lines = list(
        FlopsPage(width=width, unicode=unicode).table(CountedFlops(rows=(row,), unknown={name: 1}), [row], None)
    )

    assert all(line.cell_len <= width and line.plain.isprintable() for line in lines)
