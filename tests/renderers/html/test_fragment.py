"""Graphs, findings and memory in the output of a notebook cell."""

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from browser_page import BROWSER, HOSTILE, small
from factories import graph, op, residual_blocks
from hypothesis import given, settings
from strategies import examples, graphs

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.checks.findings import Finding, Findings, Place
from gradinspect.graph import Graph
from gradinspect.renderers.html.fragment import findings_fragment, graph_fragment, memory_fragment

VOID = {"br"}


class Tags(HTMLParser):
    """Collects the tags and the text, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        """Read a fragment."""
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        self.tags.append(tag)
        self.open += [] if tag in VOID else [tag]
        assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close the last one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data


def test_equal_blocks_are_drawn_once() -> None:
    """With their number; the picture of many is as small as that of few."""
    few, many = graph_fragment(residual_blocks(4)), graph_fragment(residual_blocks(40))

    assert "×40" in Tags(many).text
    assert "h.0-39" in Tags(many).text
    assert len(many) < len(few) + 200
    assert "<script" not in many


@pytest.mark.slow
@given(record=graphs())
@settings(max_examples=examples(30))
def test_every_fragment_is_closed_and_asks_for_nothing(record: Graph) -> None:
    """Whatever a graph is, no tag stays open and no address is in it."""
    read = Tags(graph_fragment(record))

    assert read.open == []
    assert {"script", "img", "link"}.isdisjoint(read.tags)


def test_names_cannot_break_out() -> None:
    """They are text in each of the fragments."""
    place = Place(role="saved", file=HOSTILE, line=1, code=HOSTILE)
    finding = Finding(code="GI101", title="t", text=HOSTILE, places=(place,), remedy=HOSTILE)
    found = Findings(source=HOSTILE, num_calls=1, findings=(finding,), notes=(HOSTILE,))
    texts = (graph_fragment(small()), findings_fragment(found), memory_fragment(measure_memory(small())))

    for text in texts:
        assert {"script", "img"}.isdisjoint(Tags(text).tags)
    assert HOSTILE in Tags(texts[1]).text


def test_a_graph_of_many_different_nodes_is_cut() -> None:
    """What is left out is counted."""
    nodes = [op(f"Op{number}Backward0", number + 1 if number < 2999 else None) for number in range(3000)]
    text = graph_fragment(graph(*nodes))

    assert "2,400 more boxes" in Tags(text).text
    assert len(text) < 200_000


@pytest.fixture(scope="module")
def page() -> "Iterator[object]":
    """Open a browser, which must be on the machine."""
    if BROWSER is None:
        pytest.skip("No browser is installed.")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.slow
@pytest.mark.parametrize(("background", "color"), [("#fff", "rgb(17, 17, 17)"), ("#111", "rgb(221, 221, 221)")])
def test_a_scope_expands_in_place(page: object, background: str, color: str) -> None:
    """By a click, without a script, in the color of the text around it."""
    text = graph_fragment(residual_blocks(40))
    page.set_content(f'<body style="background:{background};color:{color}">{text}</body>')  # type: ignore[attr-defined]
    block = page.locator("details", has_text="h.0-39").last  # type: ignore[attr-defined]
    before = block.evaluate("one => one.open")
    block.locator("summary").first.click()

    assert block.evaluate("one => one.open") is not before
    assert page.locator(".gi").evaluate("one => getComputedStyle(one).color") == color  # type: ignore[attr-defined]
