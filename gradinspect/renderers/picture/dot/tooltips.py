"""Tooltips of boxes: the source line and the saved attributes.

What comes in: records of the graph. What goes out: quoted DOT strings of several lines.
"""

from collections.abc import Sequence

from gradinspect.analyses.structure.call_names import leaf_shown, shown_path
from gradinspect.analyses.structure.folding import Scope
from gradinspect.analyses.structure.node_names import function_words
from gradinspect.graph import Graph, Node, SavedValue, TensorInfo, own_frame
from gradinspect.renderers.picture.dot.text import tooltip
from gradinspect.units import format_bytes, format_tensor

MAX_SAVED_LINES = 12


def node_tooltip(graph: Graph, node_id: int, number: int, look: str = "") -> str:
    """Write `node_lines` for Graphviz."""
    return tooltip(*node_lines(graph, node_id, number, look))


def node_lines(graph: Graph, node_id: int, number: int, look: str = "") -> list[str]:
    """List a node's number, the meaning of its fill, its module, source line, hooks and saved attributes."""
    node = graph.nodes[node_id]
    lines = [f"#{number} {node.name}", *filter(None, [look])]
    function = function_words(graph, node_id)
    if function is not None:
        lines.append(function if node.kind == "compiled" else f"custom Function {function}")
    if node.module is not None:
        call = graph.modules[node.module]
        lines.append(f"in {call.path or 'the outermost module'} ({call.class_name}), call {call.call}")
    if node.made_by is not None:
        lines.append(f"made by the backward of {node.made_by}")
    lines += frame_lines(graph, node.frame)
    lines += [f"{hook.kind} hook {hook.name or ''}" for hook in node.hooks]
    lines += [_saved_line(graph, value) for value in node.saved[:MAX_SAVED_LINES]]
    if len(node.saved) > MAX_SAVED_LINES:
        lines.append(f"and {len(node.saved) - MAX_SAVED_LINES} more saved")
    return lines


def leaf_tooltip(graph: Graph, node_id: int, number: int, look: str = "") -> str:
    """List a leaf's names, shape, the meaning of its fill, and whether it already has a gradient."""
    leaf = graph.nodes[node_id].leaf
    if leaf is None:
        return tooltip(f"#{number} AccumulateGrad")
    lines = [f"#{number} AccumulateGrad of {leaf.kind} {leaf_shown(graph, leaf)}".rstrip(), format_tensor(leaf.info)]
    lines += [f"also {shown_path(alias, graph.model_name)}" for alias in leaf.aliases[:MAX_SAVED_LINES]]
    lines.append(".grad is set" if leaf.has_grad else ".grad is not set")
    return tooltip(*lines, *filter(None, [look]))


def chain_tooltip(numbers: Sequence[int], nodes: Sequence[Node]) -> str:
    """List the nodes of a chain of views, one per line."""
    links = list(zip(numbers, nodes, strict=True))[:MAX_SAVED_LINES]
    lines = [" ".join((f"#{number}", node.name, *map(_tensor, node.forward_outputs[:1]))) for number, node in links]
    return tooltip(*lines, *([f"and {len(nodes) - len(links)} more"] if len(nodes) > len(links) else []))


def _tensor(info: TensorInfo | None) -> str:
    return "" if info is None else format_tensor(info)


def call_tooltip(graph: Graph, scope: Scope, look: str = "") -> str:
    """Name the module call of a scope, and the meaning of its fill."""
    if scope.module is None:
        return tooltip(f"repeated block, {len(scope.copies) + 1} copies", *filter(None, [look]))
    call = graph.modules[scope.module]
    line = f"{call.path or 'the outermost module'} ({call.class_name}), call {call.call}"
    return tooltip(line, *filter(None, [look]))


def saved_tooltip(graph: Graph, value: SavedValue) -> str:
    """Describe one saved attribute."""
    return tooltip(_saved_line(graph, value))


def frame_lines(graph: Graph, index: int | None) -> list[str]:
    """List a line, and for a line inside a library also the user's line that called it."""
    if index is None:
        return []
    own = own_frame(graph, index)
    frames = [graph.frames[index], *([own] if own is not None else [])]
    return [f"{frame.file}:{frame.line}  {frame.code}".rstrip() for frame in frames]


def _saved_line(graph: Graph, value: SavedValue) -> str:
    name = value.name if value.index is None else f"{value.name}[{value.index}]"
    if value.kind != "tensor":
        return f"{name} = {value.value}"
    facts: list[str] = []
    if value.tensor is not None:
        facts += [format_tensor(value.tensor.info), format_bytes(value.tensor.num_bytes)]
    facts += [value.status] if value.status not in (None, "live") else []
    if value.origin:
        owner = shown_path(value.origin_name, graph.model_name) if value.origin_name else ""
        facts.append(f"{value.origin} {owner}".rstrip())
    return f"{name} = {', '.join(facts)}"
