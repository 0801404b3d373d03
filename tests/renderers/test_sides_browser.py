"""Two graphs side by side as they are used, in a Chromium; skipped where there is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import Seen, opened
from changed_graphs import HOSTILE, block_graph
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.graph import Edge, Frame, Graph, ModuleCall
from gradinspect.renderers.diff_words import Side
from gradinspect.renderers.html.sides_page import render_sides

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sides(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Open a page for all tests; nothing may go wrong and nothing be asked for but the file."""
    before, after = block_graph(12), block_graph(14, extra="SinBackward0", frozen=True)
    file = tmp_path_factory.mktemp("sides") / "diff.html"
    both = [Side("a.json", "backward #1"), Side(HOSTILE, "")]
    file.write_text(render_sides(before, after, diff_graphs(before, after), both, [HOSTILE]))
    with opened(browser, file, width=1300, height=900) as seen:
        yield seen


def row_texts(page: Any) -> list[str]:
    """Return the texts of the rows that are seen, with a bar between A, the sign and B."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('#rows .row')].filter((row) => row.offsetParent)"
        ".map((row) => [...row.children].map((one) => one.innerText.replace(/\\s+/g, ' ').trim()).join(' | '))"
    )
    return found


def test_what_differs_has_a_sign_beside_its_color(sides: Seen) -> None:
    """A row that only one graph has says so in words for a screen reader, and in a sign for print."""
    sides.page.keyboard.press("c")
    sides.page.keyboard.press("n")
    row = sides.page.locator(".row.shown")

    assert row.locator(".mark").inner_text().strip() == "+"
    assert row.locator(".cell.a").get_attribute("aria-label") == "not in A"
    assert "blocks" not in row.inner_text()
    assert sides.page.locator("img").count() == 0
    assert sides.page.locator("#failures").inner_text().startswith("failed </script><img")


def test_a_link_goes_to_the_side_that_it_names(sides: Seen) -> None:
    """It expands what is around, and the row is on the screen; back leads back."""
    sides.page.keyboard.press("c")
    link = sides.page.locator("#differences a", has_text="A #24").first
    link.click()
    row = sides.page.locator(".row.shown.at-a")

    assert row.locator(".cell.a").inner_text().split()[1:3] == ["#24", "MulBackward0"]
    assert row.evaluate(
        "(row) => { const { top, bottom } = row.getBoundingClientRect(); return top > 0 && bottom < 900; }"
    )
    assert sides.page.url.endswith("#a24")


def test_a_node_shows_both_sides(sides: Seen) -> None:
    """Outputs, inputs, leaves, saved values and the line; what one side lacks has a sign."""
    sides.page.evaluate("location.hash = '#a24'")
    sides.page.wait_for_selector(".row.shown.at-a")
    sides.page.keyboard.press("Enter")
    facts = sides.page.locator(".facts").first.inner_text()

    assert "\N{MINUS SIGN} h.0.weight  f32[3]" in facts
    assert "+ other: None" in facts
    assert "train.py:9" in facts
    assert "y = torch.tanh(w * x)" in facts

    sides.page.keyboard.press("Enter")

    assert sides.page.locator(".facts").count() == 0


def test_rows_by_keyboard(sides: Seen) -> None:
    """Arrows move, expand and collapse; `d` leaves only what differs; only one row is in the tab order."""
    page = sides.page
    page.keyboard.press("c")
    page.locator("#rows .row").nth(1).focus()

    assert len(row_texts(page)) == 2

    page.keyboard.press("ArrowRight")
    count = len(row_texts(page))
    page.keyboard.press("ArrowRight")

    assert count > 2
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "2"

    page.keyboard.press("ArrowLeft")
    page.keyboard.press("d")

    assert len(row_texts(page)) < count
    assert page.locator('#rows .row[tabindex="0"]').count() == 1

    page.keyboard.press("d")


def test_a_narrow_screen_has_one_column(sides: Seen) -> None:
    """Nothing is wider than the screen, and a row that is the same in both is there once."""
    page = sides.page
    page.set_viewport_size({"width": 400, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator(".row.alike .cell.a").first.is_hidden()

    page.set_viewport_size({"width": 1300, "height": 900})


def test_lines_take_no_more_room_than_the_longest(sides: Seen) -> None:
    """What they leave is for names."""
    longest = max(len(f"{frame.file}:{frame.line}") for frame in block_graph(14).frames)
    width = "getComputedStyle(document.documentElement).getPropertyValue('--line-letters')"

    assert sides.page.evaluate(width) == str(longest)


def test_a_module_is_named_without_those_around_it(browser: Any, tmp_path: Path) -> None:
    """Modules of one beginning are told apart; an index keeps its parent."""
    paths = ["encoder_of_images", "encoder_of_images.layers.0", "encoder_of_images.layers.1", "encoder_of_images.head",
             "encoder_of_images.head.0"]  # fmt: skip
    modules = tuple(ModuleCall(path=path, class_name="Part", parent=3 if place == 4 else 0 if place else None)
                    for place, path in enumerate(paths))  # fmt: skip

    def made(size: int) -> Graph:
        places = (4, 4, 2, 2, 1, 1, 0)
        nodes = (op("MulBackward0", number + 1, module=place, shape=(size,)) for number, place in enumerate(places))
        return graph(*nodes, leaf("x", size), modules=modules)

    file = tmp_path / "diff.html"
    both = [Side("a.json", ""), Side("b.json", "")]
    file.write_text(render_sides(made(2), made(3), diff_graphs(made(2), made(3)), both))
    with opened(browser, file, width=1300, height=900) as seen:
        titles = [row.split(" | ")[0].split()[1] for row in row_texts(seen.page) if "Part" in row]

    assert titles == ["encoder_of_images", "head", "head.0", "layers.1", "layers.0"]


def test_a_node_names_its_module_without_those_around_it(browser: Any, tmp_path: Path) -> None:
    """The part that tells it from its neighbors is seen; the whole name is in the title."""
    paths = ["encoder_of_images", "encoder_of_images.first_norm", "encoder_of_images.second_norm"]
    modules = tuple(ModuleCall(path=path, class_name="Norm", parent=0 if place else None)
                    for place, path in enumerate(paths))  # fmt: skip

    def made(size: int) -> Graph:
        nodes = (op("MulBackward0", number + 1, module=place, shape=(size,)) for number, place in enumerate((2, 1, 0)))
        return graph(*nodes, leaf("x", size), modules=modules)

    file = tmp_path / "diff.html"
    both = [Side("a.json", ""), Side("b.json", "")]
    file.write_text(render_sides(made(2), made(3), diff_graphs(made(2), made(3)), both))
    with opened(browser, file, width=1300, height=900) as seen:
        found = "[...document.querySelectorAll('.row.node .cell.a .what')]"
        names = seen.page.evaluate(f"{found}.map((one) => [one.textContent, one.title])")

    assert names[:2] == [
        ["MulBackward0 second_norm Norm", "MulBackward0  encoder_of_images.second_norm Norm"],
        ["MulBackward0 first_norm Norm", "MulBackward0  encoder_of_images.first_norm Norm"],
    ]


SEEN = (  # how many of them are in their row
    "[...document.querySelectorAll('{}')].filter((one) => one.getBoundingClientRect().bottom <="
    " one.closest('.row').getBoundingClientRect().bottom).length"
)
CUT = (
    "[...document.querySelectorAll('{}')]"
    ".filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"
)


def norms(size: int) -> Graph:
    """Return a graph of two modules with a long class, each with one node of another long class."""
    modules = tuple(ModuleCall(path=path, class_name="BatchNormalization", parent=0 if path else None)
                    for path in ("", "first_norm", "last_norm"))  # fmt: skip
    nodes = [
        op("NativeBatchNormBackward0", place, module=module, frame=0, shape=(size,))
        for place, module in ((1, 2), (2, 1))
    ]
    frames = (Frame(file="train_one_of_a_long_name.py", line=9),)
    return graph(*nodes, op("MulBackward0", 3, module=0, frame=0), leaf("x", size), modules=modules, frames=frames)


def test_no_name_is_cut_before_what_its_neighbors_share(browser: Any, tmp_path: Path) -> None:
    """On a phone it takes a second line; beside the other graph, lines give way, then the class of the node."""
    file = tmp_path / "diff.html"
    both = [Side("a.json", ""), Side("b.json", "")]
    file.write_text(render_sides(norms(2), norms(3), diff_graphs(norms(2), norms(3)), both))
    with opened(browser, file, width=390, height=800) as seen:
        on_phone = seen.page.evaluate(CUT.format(".cell .what"))
        cut, lines = {}, {}
        for width in (1060, 1440):
            seen.page.set_viewport_size({"width": width, "height": 800})
            cut[width] = [seen.page.evaluate(CUT.format(part)) for part in (".own", ".op")]
            lines[width] = seen.page.evaluate(SEEN.format(".node .line"))

    assert on_phone == []
    assert cut == {1060: [[], ["NativeBatchNormBackward0"] * 4], 1440: [[], []]}  # two nodes on two sides
    assert [lines[1060], lines[1440]] == [0, 2]  # of the short name


def test_a_name_in_a_detail_does_not_open_each_copy(browser: Any, tmp_path: Path) -> None:
    """A weight that no block uses any more has another name in each."""
    file = tmp_path / "diff.html"
    first, *others = block_graph(12).nodes
    leaves = [Edge(place, 0) for place, node in enumerate(others, start=1) if node.leaf is not None]
    first = replace(first, next_edges=(*first.next_edges, *leaves))
    before = replace(block_graph(12), nodes=(first, *others))
    nodes = [
        replace(node, next_edges=(node.next_edges[0], None)) if node.name == "MulBackward0" else node for node in others
    ]
    after = replace(before, nodes=(first, *nodes))
    diff = diff_graphs(before, after)
    file.write_text(render_sides(before, after, diff, [Side("a.json", ""), Side("b.json", "")]))
    with opened(browser, file, width=1300, height=900) as seen:
        marks = [row.split(" | ")[1] for row in row_texts(seen.page) if "Block" in row]

    assert len({str(change.details) for change in diff.changed}) == 12  # the name is in it
    assert marks[2:] == [f"{marks[1]} as above"] * 11


def test_of_copies_that_differ_alike_the_first_is_open(browser: Any, tmp_path: Path) -> None:
    """The others say that they differ as the one above does; one that lost a leaf as well does not."""
    before, after = block_graph(12), block_graph(12, extra="SinBackward0", frozen=True)
    file = tmp_path / "diff.html"
    file.write_text(render_sides(before, after, diff_graphs(before, after), [Side("a.json", ""), Side("b.json", "")]))
    with opened(browser, file, width=1300, height=900) as seen:
        rows = [row.split(" | ")[:2] for row in row_texts(seen.page) if "Block" in row]
        opened_ones = seen.page.locator(".row.scope[aria-expanded=true]", has_text="Block").count()

    assert [mark for _, mark in rows] == ["+12", "+1", *["+1 as above"] * 10, "+1"]
    assert opened_ones == 3  # all together, the first, and the one with a frozen weight
