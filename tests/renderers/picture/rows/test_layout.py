"""Rows of boxes: nothing overlaps, nothing is lost."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gradinspect.renderers.picture.rows.layout import MAX_ARROWS_DRAWN, MAX_ROW, Room, RowArrow, Rows, lay_out_rows


@st.composite
def graphs_to_place(draw: st.DrawFn) -> tuple[list[Room], list[RowArrow]]:
    """Draw boxes of any size, and arrows to later ones."""
    sizes = draw(
        st.lists(st.builds(Room, st.floats(1, 400), st.floats(1, 900), st.floats(1, 90)), min_size=1, max_size=60)
    )
    last = len(sizes) - 1
    pairs = st.tuples(st.integers(0, last), st.integers(0, last)).filter(lambda pair: pair[0] != pair[1])
    arrows = [RowArrow(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=150 if last else 0))]
    return sizes, arrows


def chain(length: int) -> Rows:
    """Place equal boxes, each before the next."""
    return lay_out_rows([Room(50, 50, 30)] * length, [RowArrow(tail, head) for tail, head in pairwise(range(length))])


@given(graphs_to_place())
def test_boxes_do_not_overlap(given_graph: tuple[list[Room], list[RowArrow]]) -> None:
    """Each box has its own room inside of the whole."""
    sizes, arrows = given_graph
    rows = lay_out_rows(sizes, arrows)
    rooms = [(x, y, x + size.width, y + size.height) for (x, y), size in zip(rows.places, sizes, strict=True)]

    for index, (left, top, right, bottom) in enumerate(rooms):
        assert left >= 0
        assert top >= 0
        assert right <= rows.width + 1e-6
        assert bottom <= rows.height + 1e-6
        assert all(
            right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            for other in rooms[index + 1 :]
        )


@given(graphs_to_place())
def test_lines_lead_down(given_graph: tuple[list[Room], list[RowArrow]]) -> None:
    """Each arrow is a line from the bottom of its tail to the top of its head, always downwards, or a reference."""
    sizes, arrows = given_graph
    rows = lay_out_rows(sizes, arrows)

    assert len(rows.lines) == len(arrows)
    for arrow, line in zip(arrows, rows.lines, strict=True):
        if line is not None:
            assert line[0][1] == rows.places[arrow.tail][1] + sizes[arrow.tail].height
            assert line[-1][1] == rows.places[arrow.head][1]
            assert all(above[1] <= below[1] for above, below in pairwise(line))


def test_a_line_passes_beside_what_is_between() -> None:
    """It goes around boxes that stand side by side, in the first free place."""
    sizes = [Room(50, 50, 30)] * 5
    rows = lay_out_rows(
        sizes,
        [
            RowArrow(0, 1),
            RowArrow(0, 2),
            RowArrow(0, 3),
            RowArrow(1, 4),
            RowArrow(2, 4),
            RowArrow(3, 4),
            RowArrow(0, 4),
        ],
    )
    line = rows.lines[-1] or ()
    lane = line[1][0]

    assert not [box for box in (1, 2, 3) if rows.places[box][0] - 2 < lane < rows.places[box][0] + 102]
    assert lane != rows.places[0][0] + 50


def test_a_chain_stands_in_columns() -> None:
    """A long chain fills a page; only the way from one column to the next is a reference."""
    rows = chain(5_000)
    columns = {round(x) for x, _ in rows.places}

    assert 0.5 < rows.width / rows.height < 3
    assert rows.lines.count(None) == len(columns) - 1
    assert len(columns) > 20


def test_many_branches_wrap() -> None:
    """What one box leads to thousandfold stands in rows of bounded width, without thousands of lines."""
    rows = lay_out_rows([Room(50, 50, 30)] * 5001, [RowArrow(0, head) for head in range(1, 5001)])

    assert len({y for _, y in rows.places}) > 5000 * 100 / MAX_ROW / 30
    assert rows.lines == [None] * 5000


def test_a_few_branches_are_lines() -> None:
    """A fork is drawn, and the branch that goes on longest stands right under it."""
    sizes = [Room(50, 50, 30)] * 5
    rows = lay_out_rows(sizes, [RowArrow(0, 1), RowArrow(0, 2), RowArrow(2, 3), RowArrow(3, 4), RowArrow(0, 4)])

    assert None not in rows.lines
    assert rows.places[0][0] == rows.places[2][0] == rows.places[4][0] < rows.places[1][0]
    assert len(rows.lines[4] or ()) == 4
    assert MAX_ARROWS_DRAWN > 3


@given(graphs_to_place())
def test_places_are_a_function_of_the_graph(given_graph: tuple[list[Room], list[RowArrow]]) -> None:
    """The same boxes and arrows stand the same way, however arrows are ordered."""
    sizes, arrows = given_graph

    assert lay_out_rows(sizes, arrows).places == lay_out_rows(sizes, list(reversed(arrows))).places


def test_all_boxes_of_a_short_chain_are_one_strip() -> None:
    """As close to each other, the first one too."""
    rows = chain(4)

    assert len({x for x, _ in rows.places}) == 1
    assert len({below - above for (_, above), (_, below) in pairwise(rows.places)}) == 1
