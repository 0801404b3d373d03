"""Looks of everything in a picture: nodes, leaves, scopes, roots. Labels and colours, as DOT attributes.

What comes in: records of the graph and boxes of a `Drawing`. What goes out: attribute lists.

The colours are tints of the Okabe-Ito palette, told apart by shape and border too, so they survive grey print.
"""

from collections.abc import Sequence
from itertools import accumulate

from gradinspect.analyses.folding import Scope, first_saved_bytes, node_ids
from gradinspect.analyses.outline import leaf_uses
from gradinspect.graph import Graph, Leaf, ModuleCall, Node, Root, SavedValue, TensorInfo
from gradinspect.renderers.dot_text import attributes, html, small
from gradinspect.renderers.dot_tooltips import call_tooltip, leaf_tooltip, node_tooltip, saved_tooltip
from gradinspect.renderers.drawing_parts import Box
from gradinspect.units import format_bytes, format_count, format_tensor

ACCUMULATE_GRAD_FILL = "#00664B"
LEAF_FILL, LEAF_LINE = "#D5F0E6", "#00664B"
SHARED_FILL, SHARED_LINE = "#F7DCEB", "#8C2F66"
CUSTOM_FILL, CUSTOM_LINE = "#FBE3B5", "#8A5A00"
OTHER_FILL = "#E4E4E4"
CLOSED_FILL, CLOSED_LINE = "#CFE3F5", "#00507D"
COPIES_FILL, COPIES_LINE = "#FBF6C9", "#6B6300"
CUT_LINE = "#B34700"
ROOT_FILL = "#222222"
CLUSTER_FILLS = ("#F4F8FB", "#E8F0F7", "#DCE8F2", "#D0E0ED", "#C4D7E7")
CLUSTER_LINE = "#7F97AD"
MAX_CHIP_NAME = 28
TIMES = "×"


class BoxLooks:
    """Writes the attributes of boxes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uses = leaf_uses(graph)
        self.saved_before = list(accumulate(first_saved_bytes(graph), initial=0))

    def box(self, box: Box) -> str:
        """Write the attributes of a box."""
        if box.kind == "node":
            return self._node(box)
        if box.kind == "closed" and box.scope is not None:
            return self._closed(box.scope)
        if box.kind == "copies" and box.scope is not None:
            return self._copies(box)
        label = [f"<B>{self._num_nodes(box.ids)} not drawn</B>", small(self._size(box.ids, with_nodes=False))]
        return _boxed(label, style="filled,dashed", fillcolor="#FFFFFF", color=CUT_LINE, penwidth=1.5)

    def chip(self, leaf_node: int) -> str:
        """Write the attributes of a leaf with its AccumulateGrad node, drawn beside a node that uses it."""
        leaf = self.graph.nodes[leaf_node].leaf
        uses = self.uses[leaf_node]
        fill, line = (SHARED_FILL, SHARED_LINE) if uses > 1 else (LEAF_FILL, LEAF_LINE)
        label = "leaf" if leaf is None else _leaf_label(leaf)
        if uses > 1:
            label += small(f" {uses:,} uses", line)
        return attributes(
            shape="plain",
            label=_chip_table(label, fill, line),
            tooltip=leaf_tooltip(self.graph, leaf_node),
        )

    def cluster(self, scope: Scope, level: int) -> str:
        """Write the attributes of an open scope."""
        values: dict[str, str | float] = {
            "label": f"<{self._scope_name(scope)}  {small(self._scope_size(scope))}>",
            "tooltip": call_tooltip(self.graph, scope),
            "fillcolor": CLUSTER_FILLS[min(level, len(CLUSTER_FILLS) - 1)],
            "style": "filled,rounded",
            "color": CLUSTER_LINE,
        }
        if scope.copies:
            values |= {"style": "filled,rounded,bold", "color": COPIES_LINE}
        return attributes(**values)

    def _node(self, box: Box) -> str:
        node_id = box.ids.start
        node = self.graph.nodes[node_id]
        label = [f"<B>{html(node.name)}</B>"]
        if box.scope is not None:
            label.insert(0, self._scope_name(box.scope))
        if node.function is not None:
            label.append(small(html(node.function), CUSTOM_LINE))
        elif node.kind not in ("generated", "custom"):
            label.append(small(node.kind.replace("_", " ")))
        saved = self.saved_before[node_id + 1] - self.saved_before[node_id]
        facts = [html(_shapes(node.forward_outputs))] if node.forward_outputs else []
        facts += [f"{format_bytes(saved)} saved"] if saved else []
        label += [small(" · ".join(facts))] if facts else []
        return _boxed(label, tooltip=node_tooltip(self.graph, node_id), **_node_style(node))

    def _closed(self, scope: Scope) -> str:
        label = [self._scope_name(scope), small(self._scope_size(scope, node_ids(scope)))]
        tooltip = call_tooltip(self.graph, scope)
        return _boxed(label, shape="folder", fillcolor=CLOSED_FILL, color=CLOSED_LINE, tooltip=tooltip)

    def _copies(self, box: Box) -> str:
        copies = () if box.scope is None else box.scope.copies
        label = [f"<B>{len(copies):,} more like this</B>"]
        calls = [self._call_of(items) for items in (copies[0], copies[-1])]
        if calls[0] is not None and calls[1] is not None:
            label.append(small(_between(calls[0], calls[1])))
        label.append(small(self._size(box.ids)))
        return _boxed(label, style="filled,dashed", fillcolor=COPIES_FILL, color=COPIES_LINE, penwidth=1.3)

    def _call_of(self, items: Sequence[int | Scope]) -> ModuleCall | None:
        first = items[0]
        is_call = len(items) == 1 and isinstance(first, Scope) and first.module is not None
        return self.graph.modules[first.module] if is_call else None  # type: ignore[union-attr, index]

    def _scope_name(self, scope: Scope) -> str:
        if scope.module is not None:
            call = self.graph.modules[scope.module]
            return f"{path_markup(call)} {_class_of(call)}" if call.path else f"<B>{html(call.class_name)}</B>"
        times = f"<B>{TIMES}{len(scope.copies) + 1:,}</B>"
        first, last = self._call_of(scope.items), self._call_of(scope.copies[-1])
        if first is None or last is None:
            return f"{times} repeated"
        return f"{_between(first, last)} {_class_of(first)} {times}"

    def _scope_size(self, scope: Scope, ids: range | None = None) -> str:
        times = len(scope.copies) + 1
        if times == 1 and ids is not None:
            return self._size(ids)
        size = format_count(scope.num_nodes // times, "node") + (" each" if times > 1 else "")
        return size + (f" · {format_bytes(scope.saved_bytes)}" if scope.saved_bytes else "")

    def _size(self, ids: range, *, with_nodes: bool = True) -> str:
        leaves = {
            edge.next_node
            for node_id in ids
            for edge in self.graph.nodes[node_id].next_edges
            if edge is not None and self.graph.nodes[edge.next_node].kind == "accumulate_grad"
        }
        saved = self.saved_before[ids.stop] - self.saved_before[ids.start]
        facts = (
            self._num_nodes(ids) if with_nodes else "",
            format_count(len(leaves), "leaf", "leaves") if leaves else "",
            format_bytes(saved) if saved else "",
        )
        return " · ".join(filter(None, facts))

    def _num_nodes(self, ids: range) -> str:
        return format_count(sum(self.graph.nodes[node].kind != "accumulate_grad" for node in ids), "node")


def root_box(root: Root) -> str:
    """Write the attributes of the mark on a root."""
    name = f"<B>{html(root.name)}</B>" if root.name else "<B>root</B>"
    shape = f" {html(format_tensor(root.info))}" if root.info is not None else ""
    return _boxed(
        [name + shape], shape="invhouse", style="filled", fillcolor=ROOT_FILL, fontcolor="#FFFFFF", margin="0,0.02"
    )


def more_roots(count: int) -> str:
    """Write the attributes of the mark that stands for the roots beyond the first few."""
    return _boxed(
        [f"{count:,} more roots"],
        shape="invhouse",
        style="filled",
        fillcolor=ROOT_FILL,
        fontcolor="#FFFFFF",
        margin="0,0.02",
    )


def more_leaves(count: int) -> str:
    """Write the attributes of the chip that stands for the leaves beyond the first few."""
    label = f"{count:,} more {'leaf' if count == 1 else 'leaves'}"
    return attributes(shape="plain", label=_chip_table(label, LEAF_FILL, LEAF_LINE))


def saved_note(value: SavedValue) -> str:
    """Write the attributes of a saved tensor's note."""
    index = "" if value.index is None else f"[{value.index}]"
    facts = [f"<B>{html(value.name.removeprefix('_saved_'))}{index}</B>"]
    if value.tensor is not None:
        facts.append(html(format_tensor(value.tensor.info)))
        facts.append(format_bytes(value.tensor.num_bytes))
    facts += [value.status] if value.status not in (None, "live") else []
    label = small(" ".join(facts), "#333333")
    return _boxed([label], shape="note", style="filled", fillcolor="#FFFFFF", tooltip=saved_tooltip(value))


def is_custom(node: Node) -> bool:
    """Tell whether a node is of a custom autograd.Function."""
    return node.kind == "custom" or node.function is not None


def path_markup(call: ModuleCall) -> str:
    """Write a module's path with its last part in bold, and the number of the call when it is not the first."""
    outer, dot, name = call.path.rpartition(".")
    number = small(f" call {call.call}") if call.call > 1 else ""
    return (small(html(outer) + dot, points=9) if outer else "") + f"<B>{html(name or 'model')}</B>{number}"


def _between(first: ModuleCall, last: ModuleCall) -> str:
    return path_markup(first) if first == last else f"{path_markup(first)} … {path_markup(last)}"


def _class_of(call: ModuleCall) -> str:
    return small(html(call.class_name), "#333333", 9)


def _node_style(node: Node) -> dict[str, str | float]:
    if is_custom(node):
        return {
            "shape": "hexagon",
            "style": "filled",
            "fillcolor": CUSTOM_FILL,
            "color": CUSTOM_LINE,
            "margin": "0.02,0.02",
        }
    return {"fillcolor": "#FFFFFF" if node.kind == "generated" else OTHER_FILL}


def _shapes(infos: Sequence[TensorInfo | None]) -> str:
    first = "no tensor" if infos[0] is None else format_tensor(infos[0])
    return first if len(infos) == 1 else f"{first} + {len(infos) - 1} more"


def _leaf_label(leaf: Leaf) -> str:
    name = f"<B>{_dotted(leaf.name)}</B> " if leaf.name else ""
    return name + small(html(format_tensor(leaf.info)), "#333333")


def _dotted(name: str) -> str:
    """Shorten a dotted name from its left: the last parts tell the most."""
    while len(name) > MAX_CHIP_NAME and "." in name.lstrip("…."):
        name = "…." + name.lstrip("….").split(".", 1)[1]
    return html(name, MAX_CHIP_NAME)


def _chip_table(label: str, fill: str, line: str) -> str:
    mark = f'<TD BGCOLOR="{ACCUMULATE_GRAD_FILL}"><FONT COLOR="#FFFFFF" POINT-SIZE="8"><B>+=</B></FONT></TD>'
    table = f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="2" COLOR="{line}">'
    return f'<{table}<TR>{mark}<TD BGCOLOR="{fill}">{label}</TD></TR></TABLE>>'


def _boxed(lines: Sequence[str], **values: str | float) -> str:
    return attributes(label=f"<{'<BR/>'.join(filter(None, lines))}>", **values)
