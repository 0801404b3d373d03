"""Labels of arrows are where there is room."""

import re

from gradinspect.renderers.picture.edge_labels import with_labels
from gradinspect.renderers.picture.placed import Rect

HEAD = 'digraph {\n\tgraph [bb="0,0,100,100"];\n'
BOX = '\tn0\t[height=0.27778,\n\t\tpos="50,90",\n\t\twidth=0.55556];\n'
ARROW = '\tn0 -> n1\t[color="#444444",\n\t\tpos="e,50,10 50,80 50,60 50,40 50,15",\n\t\tspoken=" self "];\n'


def label_at(placed: str) -> list[tuple[float, float]]:
    """Return where labels are."""
    return [(float(x), float(y)) for x, y in re.findall(r'label="self", lp="([\d.]+),([\d.]+)"', placed)]


def test_a_label_is_beside_its_arrow() -> None:
    """In the middle, on the right."""
    ((x, y),) = label_at(with_labels(HEAD + BOX + ARROW + "}\n"))

    assert 52 < x < 70
    assert 30 < y < 60


def test_a_label_is_clear_of_the_head_of_a_slanted_arrow() -> None:
    """The line may move toward the label, and its head is wider than it."""
    slanted = '\tn0 -> n1\t[color="#444444",\n\t\tpos="e,54,62 50,80 51,75 52,71 53,68",\n\t\tspoken=" self "];\n'
    ((x, y),) = label_at(with_labels(HEAD + slanted + "}\n"))
    label = Rect(x - 8, y - 4.5, x + 8, y + 4.5)

    assert not any(map(label.holds, [(53 - 3.5, 68), (53 + 3.5, 68), (53, 68), (54, 62)]))


def test_labels_keep_clear_of_boxes_and_of_each_other() -> None:
    """The next place along the arrow is taken, or the other side."""
    wall = '\tn2\t[height=0.5,\n\t\tpos="70,46",\n\t\twidth=0.5];\n'
    placed = with_labels(HEAD + BOX + wall + ARROW * 2 + "}\n")
    first, second = (Rect(x - 8, y - 4.5, x + 8, y + 4.5) for x, y in label_at(placed))

    assert not first.overlaps(second)
    assert not any(label.overlaps(Rect(52, 28, 88, 64)) for label in (first, second))


def test_a_label_without_room_is_in_the_tooltip() -> None:
    """Nothing is written over anything."""
    wall = '\tn2\t[height=2,\n\t\tpos="50,50",\n\t\twidth=2];\n'
    placed = with_labels(HEAD + wall + ARROW + "}\n")

    assert label_at(placed) == []
    assert 'tooltip="self"' in placed
    assert "spoken" not in placed
