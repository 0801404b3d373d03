"""The page's data about a graph, as JSON.

What comes in: a `Graph`. What goes out: ASCII text without `<`, `>` or `&`, so that nothing in it can start or end an
element.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from gradinspect.analyses.structure.cut import Cut, describe_cut
from gradinspect.analyses.structure.expansion import readable_depth
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.analyses.summary import Summary, describe_edges, summarize
from gradinspect.graph import Graph
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.facts import CodeAround
from gradinspect.renderers.html.memory import page_memory
from gradinspect.renderers.html.nodes import PageNode, Texts, page_nodes, usual_device
from gradinspect.renderers.html.tree import page_scopes
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.units import escape_control, format_count, format_held, format_weights

NODES_AT_ONCE = 10_000  # that are made and written


def page_json(graph: Graph, options: DrawOptions) -> Iterator[str]:
    """Write everything that the page shows about a graph, in pieces: a million nodes are not held twice."""
    folded = fold_graph(graph, shapes=options.fold_shapes)
    scopes, alone = page_scopes(graph, folded)
    texts = Texts()
    yield '{"nodes":['
    yield from _written_nodes(page_nodes(graph, options.cut, texts, alone))
    yield "],"
    figures = summarize(graph)
    page = {
        "title": escape_control(graph.source),
        "captured": escape_control("  ".join(filter(None, (figures.captured_at, figures.other_calls)))),
        "torch": escape_control(graph.torch_version),
        "figures": _figures(figures) if options.cut is None else [escape_control(describe_cut(options.cut))],
        "warnings": [escape_control(warning) for warning in graph.warnings],
        "device": escape_control(usual_device(graph)),
        "memory": page_memory(graph),
        "hasGradients": graph.gradients is not None,
        "cut": None if options.cut is None else _cut(options.cut),
        "colorBy": options.color_by,
        "depth": readable_depth(folded) if options.depth is None else options.depth,
        "roots": [[root.node, root.output_nr, escape_control(root.name or "")] for root in graph.roots],
        "modules": [[escape_control(call.path), escape_control(call.class_name), call.call] for call in graph.modules],
        "frames": [
            [
                escape_control(frame.file),
                frame.line,
                *map(escape_control, (frame.function, frame.code)),
                frame.caller,
                *options.links[index : index + 1],
            ]
            for index, frame in enumerate(graph.frames)
        ],
        "around": {index: _escaped(code) for index, code in options.facts.around},
        "formulas": [
            [escape_control(name), list(map(escape_control, lines))] for name, lines in options.facts.formulas
        ],
        "scopes": msgspec.to_builtins(scopes),
        "texts": list(texts.places),
    }
    yield harmless(json_text(page, separators=(",", ":")).removeprefix("{"))


def _written_nodes(nodes: Iterator[PageNode]) -> Iterator[str]:
    """Write numbers, and the words for those that are not finite."""
    separator = ""
    while some := tuple(islice(nodes, NODES_AT_ONCE)):
        yield separator + msgspec.json.encode(some)[1:-1].decode()
        separator = ","


def _figures(figures: Summary) -> list[str]:
    return [
        format_held(figures.held_bytes, 0),
        format_count(figures.nodes, "node"),
        describe_edges(figures),
        format_count(figures.leaves, "leaf", "leaves"),
        *([format_weights(figures.weight_bytes)] if figures.weight_bytes else []),
    ]


def _escaped(code: CodeAround) -> list[object]:
    before, after = (list(map(escape_control, lines)) for lines in (code.before, code.after))
    return [before, escape_control(code.line), after]


def _cut(cut: Cut) -> dict[str, object]:
    return {"numbers": cut.numbers, "lost": cut.lost_places, "came": cut.lost_users}


def harmless(text: str) -> str:
    """Escape what could end the element; `json_text` has already escaped non-ASCII characters."""
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
