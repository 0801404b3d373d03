"""A graph for Google's Model Explorer, which shows modules as layers that expand.

Arrows go as gradients do, from the loss to the leaves.
Source: https://github.com/google-ai-edge/model-explorer/wiki, JSON graphs.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.graph import Consumer, FoundNode, Graph, argument_name, consumers
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.formats import FileContent
from gradinspect.units import escape_control, format_bytes

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions


def model_explorer_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .modelexplorer.json file."""
    users = consumers(graph)
    nodes = [_node(graph, row, users.get(row.id, [])) for row in find_nodes(graph)]
    document = {"label": escape_control(graph.source), "graphs": [{"id": "backward", "nodes": nodes}]}
    return FileContent(json_text(document, separators=(",", ":")).encode())


def _node(graph: Graph, row: FoundNode, users: list[Consumer]) -> dict[str, object]:
    shown = {
        "held": format_bytes(row.held_bytes) if row.held_bytes else "", "line": row.line or "",
        "saved": ", ".join(row.statuses), "leaf": row.leaf or "",
    }  # fmt: skip
    incoming = [
        {
            "sourceNodeId": str(user.node), "sourceNodeOutputId": str(user.position),
            "targetNodeInputId": str(_input_nr(graph, user)),
        }
        for user in users
    ]  # fmt: skip
    outputs = [
        {
            "id": str(position),
            "attrs": [{"key": "__tensor_tag", "value": argument_name(graph, graph.nodes[row.id], position) or ""}],
        }
        for position, edge in enumerate(graph.nodes[row.id].next_edges)
        if edge is not None
    ]
    return {
        "id": str(row.id),
        "label": escape_control(row.leaf or row.name),
        "namespace": "/".join(_layers(graph, row.id) or _common([_layers(graph, user.node) for user in users])),
        "attrs": [{"key": key, "value": escape_control(value)} for key, value in shown.items() if value]
        + [{"key": f"output {index}", "value": output} for index, output in enumerate(row.outputs)],
        "incomingEdges": incoming,
        "outputsMetadata": outputs,
    }


def _input_nr(graph: Graph, user: Consumer) -> int:
    edge = graph.nodes[user.node].next_edges[user.position]
    return 0 if edge is None else edge.input_nr


def _layers(graph: Graph, number: int) -> list[str]:
    """Return the module calls around a node, outermost first: `model`, `model.h.0`, `model.h.0.attn`."""
    names: list[str] = []
    call = graph.nodes[number].module
    while call is not None:
        module = graph.modules[call]
        times = f" (call {module.call})" if module.call > 1 else ""
        names.append(
            escape_control(f"{shown_path(module.path, graph.model_name)} {module.class_name}{times}").replace("/", "|")
        )
        call = module.parent
    return names[::-1]


def _common(layers: Sequence[list[str]]) -> list[str]:
    """Return what all begin with: a leaf is made outside of modules, and shown in the one that uses it."""
    return [same[0] for same in takewhile(lambda names: len(set(names)) == 1, zip(*layers, strict=False))]
