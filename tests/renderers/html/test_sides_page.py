"""Two graphs side by side: what is in the file, without a browser."""

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from changed_graphs import HOSTILE, block_graph
from factories import graph as made
from factories import leaf, op
from hypothesis import given, settings
from hypothesis import strategies as st
from model_names import PARAMETERS
from msgspec.structs import replace
from strategies import connected_graphs, examples

from gradinspect.analyses.diff.comparison import diff_graphs
from gradinspect.graph import Fingerprint, Graph, NodeValues
from gradinspect.renderers.diff_words import Side
from gradinspect.renderers.html.sides_page import render_sides


def page_of(before: Graph, after: Graph) -> str:
    """Write the page of two graphs."""
    return render_sides(before, after, diff_graphs(before, after), [Side("a.json", ""), Side(HOSTILE, "")], [HOSTILE])


def data_of(page: str) -> Any:
    """Read the data of a page."""
    found = re.search('<script type="application/json" id="graph">(.*?)</script>', page)

    assert found is not None

    return json.loads(found[1])


def entries(data: Any) -> dict[str, list[str]]:
    """Return the differences that the page lists: heading -> signs and words."""
    return {section["title"]: [f"{one['sign']} {one['words']}" for one in section["entries"]]
            for section in data["differences"]}  # fmt: skip


@pytest.mark.slow
@given(connected_graphs(), connected_graphs())
def test_every_node_is_in_one_row(before: Graph, after: Graph) -> None:
    """Each node of each graph once, and each row in one scope."""
    data = data_of(page_of(before, after))
    numbers = [sorted(row[side][0] for row in data["rows"] if row[side]) for side in (0, 1)]
    placed = sorted(item for scope in data["scopes"] for item in scope["items"] if item >= 0)
    has_row = [row for row, node in enumerate(data["rows"]) if _name(data, node) != "AccumulateGrad"]

    assert numbers == [list(range(len(graph.nodes))) for graph in (before, after)]
    assert [item for item in placed if item in has_row] == has_row
    assert len(placed) == len(set(placed))


def _name(data: Any, row: Any) -> str:
    side = row[0] or row[1]
    name: str = data["texts"][data["nodes"][side[1]][0]]
    return name.partition("  ")[0]


@given(st.data())
@settings(max_examples=examples(15))
def test_different_leaves_are_listed_and_drawn_apart(data: st.DataObject) -> None:
    """Their names are in the page as they are, whatever their neighbors are called."""
    model = data.draw(st.sampled_from(sorted(PARAMETERS)))
    names = data.draw(st.lists(st.sampled_from(PARAMETERS[model]), min_size=2, max_size=24, unique=True))
    before, after = (
        made(op("StackBackward0", *range(1, len(names) + 1)), *(leaf(name, size) for name in names)) for size in (3, 4)
    )
    page = data_of(page_of(before, after))
    listed = [entry for words in entries(page).values() for entry in words]

    assert len(listed) == len(set(listed))
    assert {name for name in names if any(name in text for text in page["texts"])} == set(names)


def test_matched_modules_are_in_one_row() -> None:
    """Also one that has another name; a module that only one graph has names the other side as missing."""
    data = data_of(page_of(block_graph(2), block_graph(3, name="blocks")))
    texts = data["texts"]
    names = {tuple("" if place < 0 else texts[place] for place in call[:2]) for call in data["calls"]}

    assert names == {("model", "model"), ("h.0", "blocks.0"), ("h.1", "blocks.1"), ("", "blocks.2")}
    assert entries(data)["modules"] == [
        "~ renamed h.0-1 → blocks.0-1 ×2  Block", "+ only in B: blocks.2  Block",
    ]  # fmt: skip


def test_what_is_listed_and_where() -> None:
    """Rows by module with their nodes, leaves with the nodes that use them, the first values that differ."""
    values = [
        (NodeValues(node=0, outputs=(Fingerprint(norm=norm, mean=0, low=0, high=norm, num_nonfinite=0, digest=str(norm),
                                                 sketch=""),)),)
        for norm in (1.0, 2.0)
    ]  # fmt: skip
    before = replace(block_graph(2), values=values[0])
    after = replace(block_graph(2, extra="SinBackward0", frozen=True), values=values[1])
    data = data_of(page_of(before, after))
    listed = entries(data)
    (sins,) = [one for one in data["differences"][0]["entries"] if one["sign"] == "+"]
    (frozen,) = [one for section in data["differences"] if section["title"] == "leaves" for one in section["entries"]]

    assert listed["h.0-1"][0] == "+ SinBackward0 ×2  f32[2, 3]"
    assert [_name(data, data["rows"][place]) for place in sins["nodes"]] == ["SinBackward0"] * 2
    assert listed["leaves"] == ["- frozen: h.0.weight"]
    assert [_name(data, data["rows"][place]) for place in frozen["nodes"]] == ["MulBackward0"]
    assert listed["values"][0] == "~ first in forward: SumBackward0"


def test_the_page_allows_no_request_and_no_other_script() -> None:
    """Its policy lists its script and its style by their hashes."""
    page = page_of(block_graph(1), block_graph(2))
    (style,), script = re.findall("<style>(.*?)</style>", page, re.DOTALL), page.rpartition("<script>")[2]
    texts = (script.partition("</script>")[0], style)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]

    assert f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_names_cannot_end_an_element() -> None:
    """Whatever the captures call their nodes, leaves and files."""
    before = made(op(HOSTILE, 1), leaf(HOSTILE, 3))
    page = page_of(before, made(op("SinBackward0", 1), leaf("w", 3)))

    assert "<img" not in page
    assert page.isascii() or HOSTILE not in page
    assert page.count("<script") == 2
