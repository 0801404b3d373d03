"""Two graphs side by side, as one self-contained HTML file.

What comes in: two graphs and what differs. What goes out: the page. It is made of files in `html/`, like that of one
graph, under the same policy: no request, and no script or style but its own.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gradinspect.analyses.diff.records import GraphDiff, Pair
from gradinspect.analyses.diff.union import unite_graphs
from gradinspect.graph import Graph
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.diff_words import Side, summary
from gradinspect.renderers.html.data import harmless
from gradinspect.renderers.html.differences import page_differences
from gradinspect.renderers.html.nodes import Texts
from gradinspect.renderers.html.page import page_document
from gradinspect.renderers.html.sides import page_sides
from gradinspect.units import escape_control, format_bytes, format_change, format_growth

SCRIPTS: Final = ("dom", "side_page/rows", "side_page/details", "side_page/places", "side_page/tree")


def render_sides(
    before: Graph, after: Graph, diff: GraphDiff, sides: Sequence[Side], failures: Sequence[str] = ()
) -> str:
    """Write the page.

    Args:
        before: A.
        after: B.
        diff: What differs.
        sides: What A and B are called.
        failures: Why the gates fail.
    """
    union = unite_graphs(before, after, diff)
    texts = Texts()
    shown = page_sides(before, after, diff, union, texts)
    page = {
        "sides": [list(map(escape_control, side)) for side in sides],
        "figures": list(_figures(diff)),
        "summary": escape_control(f"{summary(diff)}."),
        "failures": list(map(escape_control, failures)),
        "torch": list(map(escape_control, diff.torch_versions)),
        "differences": msgspec.to_builtins(page_differences(diff, union)),
        "scopes": msgspec.to_builtins(shown.scopes),
        "rows": msgspec.to_builtins(shown.rows),
        "nodes": msgspec.to_builtins(shown.sides),
        "calls": msgspec.to_builtins(shown.calls),
        "texts": list(texts.places),
    }
    content = harmless(json_text(page, separators=(",", ":")))
    title = f"{sides[0].label} → {sides[1].label} · gradinspect"
    return "".join(page_document(title, "side_page/sides.css", "side_page/sides.html", SCRIPTS, (content,)))


def _figures(diff: GraphDiff) -> list[list[str]]:
    counts = (("nodes", diff.nodes), ("edges", diff.edges), ("leaves", diff.leaves))
    rows = [[name, f"{pair.before:,}", f"{pair.after:,}", f"{pair.change:+,}" if pair.change else ""]
            for name, pair in counts]  # fmt: skip
    return [*rows, _bytes_row("held", diff.held_bytes), _bytes_row("weights", diff.weight_bytes)]


def _bytes_row(name: str, pair: Pair) -> list[str]:
    share = f" ({format_growth(pair.change, pair.before)})" if pair.change and pair.before else ""
    change = f"{format_change(pair.change)}{share}" if pair.change else ""
    return [name, format_bytes(pair.before), format_bytes(pair.after), change]
