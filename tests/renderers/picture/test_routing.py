"""Arrows from one column to another."""

import itertools
import re
from collections.abc import Sequence

import pytest

from gradinspect.renderers.picture.placed import Rect, back_from_downward, downward, rects_of
from gradinspect.renderers.picture.routing import ColumnArrow, with_crossings


def layout(*columns: int, lefts: Sequence[int] = (0, 90, 180)) -> str:
    """Write columns of boxes of 40 x 20 points as Graphviz does."""
    lines = []
    for number, (count, left) in enumerate(zip(columns, lefts, strict=False)):
        lines.append(f'\tsubgraph cluster_of0_{number} {{\n\t\tgraph [bb="{left},0,{left + 64},300"];')
        for place in range(count):
            y = 278 - 60 * place
            lines.append(f'\t\tn{number}{place}\t[height=0.27778,\n\t\t\tpos="{left + 32},{y}",\n\t\t\twidth=0.55556];')
        lines.append("\t}")
    return 'digraph {\n\tgraph [bb="0,0,400,300"];\n' + "\n".join(lines) + "\n}\n"


def arrow(tail: str, head: str, counts: tuple[int, ...]) -> ColumnArrow:
    """Describe an arrow between boxes that are named after their column and place."""
    first, last = int(tail[1]), int(head[1])
    names = [[f"n{number}{place}" for place in range(count)] for number, count in enumerate(counts)]
    return ColumnArrow(
        tail, head, tuple(f"cluster_of0_{number}" for number in range(first, last + 1)),
        tuple(set(names[first]) - {tail}), tuple(set(names[last]) - {head}), {"color": "#444444"},
    )  # fmt: skip


def path(edge: str) -> list[tuple[float, float]]:
    """Read the points of an arrow, its tip last."""
    tip, *points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", edge.split('pos="')[1])
    return [(float(x), float(y)) for x, y in (*points, tip)]


def crosses(edge: str, box: Rect) -> bool:
    """Return whether an arrow goes through the inside of a box."""
    points = path(edge)
    middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in itertools.pairwise(points)]
    return any(
        box.left + 0.1 < x < box.right - 0.1 and box.bottom + 0.1 < y < box.top - 0.1 for x, y in (*points, *middles)
    )


def test_arrows_keep_clear_of_boxes() -> None:
    """From the end of a column to the beginning of the next, from within one, and past another."""
    counts = (5, 4, 5)
    placed = layout(*counts)
    ends = [("n04", "n10"), ("n02", "n12"), ("n01", "n24"), ("n00", "n20"), ("n13", "n20")]
    added = with_crossings(placed, [arrow(tail, head, counts) for tail, head in ends]).splitlines()[-7:]
    edges = [line for line in added if "->" in line]
    rects = {name: rect for name, rect in rects_of(placed).items() if name.startswith("n")}

    assert len(edges) == len(ends)
    for edge, (tail, head) in zip(edges, ends, strict=True):
        assert not [name for name, rect in rects.items() if crosses(edge, rect)]
        assert edge.startswith(f"\t{tail} -> {head}\t[")
        assert rects[tail].left - 1 <= path(edge)[0][0] <= rects[tail].right + 1
        assert rects[head].left - 1 <= path(edge)[-1][0] <= rects[head].right + 1


@pytest.mark.parametrize("lefts", [(180, 90, 0), (90, 180, 0), (90, 0, 180)])
def test_columns_may_come_in_any_order(lefts: Sequence[int]) -> None:
    """Graphviz does not always put a later one on the right; an arrow to the left does not cross its boxes either."""
    counts = (4, 3, 2)
    placed = layout(*counts, lefts=lefts)
    added = with_crossings(placed, [arrow(*ends, counts) for ends in (("n03", "n10"), ("n12", "n20"))])
    edges = [line for line in added.splitlines() if "->" in line]
    rects = {name: rect for name, rect in rects_of(added).items() if name.startswith("n")}

    assert len(edges) == 2
    assert not [name for edge in edges for name, rect in rects.items() if crosses(edge, rect)]
    if lefts == (180, 90, 0):
        assert rects["n00"].left < rects["n10"].left < rects["n20"].left  # all of it is turned around


def test_two_arrows_between_the_same_boxes_are_beside_each_other() -> None:
    """They do not begin, turn or end at the same points."""
    counts = (3, 3)
    both = with_crossings(layout(*counts), [arrow("n02", "n10", counts)] * 2).splitlines()
    one, other = (path(line) for line in both if "->" in line)

    assert not set(one) & set(other)


def test_a_layout_without_such_arrows_is_unchanged() -> None:
    """Nothing is read."""
    assert with_crossings("anything", []) == "anything"


def test_arrows_to_one_box_share_a_line() -> None:
    """Many arrows to one box are as easy to follow as one."""
    counts = (4, 2)
    both = with_crossings(layout(*counts), [arrow("n00", "n10", counts), arrow("n02", "n10", counts)]).splitlines()
    one, other = (path(line) for line in both if "->" in line)

    assert one[-1] == other[-1]
    assert one[-6:] == other[-6:]


def test_no_arrow_runs_on_another() -> None:
    """Where one would leave at the height at which the other comes, they cross instead."""
    counts = (5, 5)
    added = with_crossings(layout(*counts), [arrow("n01", "n13", counts), arrow("n03", "n12", counts)])
    first, second = (path(line) for line in added.splitlines() if "->" in line)

    assert max(x for x, y in second if 105 < y < 150) < min(x for x, y in first if 105 < y < 150)


def test_an_arrow_that_is_laid_out_backward_leads_from_its_tail_to_its_head() -> None:
    """With its points in that order, and its tip at the head."""
    back = '\tn10 -> n11:e\t[dir=back,\n\t\theadport=e,\n\t\tpos="s,1,2 3,4 5,6 7,8 9,10"];'
    placed = layout(2, 2).replace("\n}\n", f"\n{back}\n}}\n")
    (turned, _) = (line for line in with_crossings(placed, [arrow("n01", "n10", (2, 2))]).split(";\n") if "->" in line)

    assert "n11:e -> n10" in turned
    assert 'pos="e,1,2 9,10 7,8 5,6 3,4"' in turned
    assert "dir=" not in turned


@pytest.mark.parametrize("direction", ["TB", "BT", "LR", "RL"])
def test_what_is_looked_at_as_if_it_ran_down_is_put_back(direction: str) -> None:
    """Each point is where it was."""
    assert back_from_downward(downward((3, 5), direction), direction) == (3, 5)
