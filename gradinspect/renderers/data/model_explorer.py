"""A graph for Google's Model Explorer, which shows modules as layers that expand.

Arrows go as gradients do, from the loss to the leaves.
Source: https://github.com/google-ai-edge/model-explorer/wiki, JSON graphs.
"""

from gradinspect.analyses.selection.finding import FoundNode, find_nodes
from gradinspect.graph import Consumer, Graph, argument_name, consumers, module_name
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.formats import FileContent
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.units import escape_control, format_bytes


def model_explorer_file(graph: Graph, _options: DrawOptions) -> FileContent:
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
        "namespace": _namespace(graph, row.id),
        "attrs": [{"key": key, "value": escape_control(value)} for key, value in shown.items() if value]
        + [{"key": f"output {index}", "value": output} for index, output in enumerate(row.outputs)],
        "incomingEdges": incoming,
        "outputsMetadata": outputs,
    }


def _input_nr(graph: Graph, user: Consumer) -> int:
    edge = graph.nodes[user.node].next_edges[user.position]
    return 0 if edge is None else edge.input_nr


def _namespace(graph: Graph, number: int) -> str:
    """Return the module calls around a node, outermost first: `model/model.h.0/model.h.0.attn`."""
    names: list[str] = []
    call = graph.nodes[number].module
    while call is not None:
        module = graph.modules[call]
        times = f" (call {module.call})" if module.call > 1 else ""
        names.append(escape_control(f"{module_name(graph, module.path)} {module.class_name}{times}").replace("/", "|"))
        call = module.parent
    return "/".join(reversed(names))
