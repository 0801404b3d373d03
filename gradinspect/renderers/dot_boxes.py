"""Looks of everything in a picture: nodes, leaves, scopes, roots. Labels and colours, as DOT attributes.

What comes in: records of the graph and boxes of a `Drawing`. What goes out: attribute lists.

The colours are tints of the Okabe-Ito palette, told apart by shape and border too, so they survive grey print.
"""

from collections.abc import Sequence
from itertools import accumulate

from gradinspect.analyses.cut import Cut, number_of, uses_in_whole
from gradinspect.analyses.folding import Scope, first_saved_bytes, node_ids
from gradinspect.analyses.shape_chains import chain_title
from gradinspect.graph import Graph, Leaf, ModuleCall, Node, Root, SavedValue, TensorInfo
from gradinspect.renderers.colouring import Colouring, Look
from gradinspect.renderers.dot_text import attributes, html, quoted, small, without_colours
from gradinspect.renderers.dot_tooltips import call_tooltip, chain_tooltip, leaf_tooltip, node_tooltip, saved_tooltip
from gradinspect.renderers.drawing_parts import Box, copy_ranges
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
NEUTRAL_CLUSTER_FILLS = ("#FAFAFA", "#F3F3F3", "#ECECEC", "#E5E5E5", "#DEDEDE")  # where colours tell something else
CLUSTER_LINE = "#7F97AD"
NEUTRAL_FILL = "#F7F7F7"  # of what has no fill of its own in a coloured picture
MAX_CHIP_NAME = 28
MAX_STRIP = 24  # copies of a repeat that are coloured one by one
TIMES = "×"


class BoxLooks:
    """Writes the attributes of boxes of one graph."""

    def __init__(self, graph: Graph, colouring: Colouring | None = None, cut: Cut | None = None) -> None:
        """Prepare for a graph; without a colouring, a fill tells what kind of thing a box is."""
        self.graph = graph
        self.cut = cut
        self.colouring = colouring
        self.uses = uses_in_whole(graph, cut)
        self.saved_before = list(accumulate(first_saved_bytes(graph), initial=0))

    def box(self, box: Box) -> str:
        """Write the attributes of a box."""
        if box.kind == "node":
            return self._node(box)
        if box.kind == "shapes":
            return self._chain(box.ids)
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
        look = None if self.colouring is None else self.colouring.leaf(leaf_node)
        if look is not None:
            label = without_colours(label + (small(f" · {look.fact}") if look.fact else ""))
            label = f'<FONT COLOR="{look.ink}">{label}</FONT>'
            fill, line = look.fill, look.line or line
        return attributes(
            shape="plain",
            label=_chip_table(label, fill, line),
            tooltip=leaf_tooltip(
                self.graph, leaf_node, number_of(self.cut, leaf_node), "" if look is None else look.words
            ),
        )

    def cluster(self, scope: Scope, level: int) -> str:
        """Write the attributes of an open scope."""
        fills = CLUSTER_FILLS if self.colouring is None else NEUTRAL_CLUSTER_FILLS
        values: dict[str, str | float] = {
            "label": f"<{self._scope_name(scope)}  {small(self._scope_size(scope))}>",
            "tooltip": call_tooltip(self.graph, scope),
            "fillcolor": fills[min(level, len(fills) - 1)],
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
        look = self._look(box.ids)
        saved = self.saved_before[node_id + 1] - self.saved_before[node_id]
        facts = [html(_shapes(node.forward_outputs))] if node.forward_outputs else []
        facts += [look.fact] if look is not None and look.fact else [f"{format_bytes(saved)} saved"] if saved else []
        label += [small(" · ".join(facts))] if facts else []
        tooltip = node_tooltip(self.graph, node_id, number_of(self.cut, node_id), "" if look is None else look.words)
        return _painted(label, look, tooltip=tooltip, **_node_style(node))

    def _chain(self, ids: range) -> str:
        nodes = [self.graph.nodes[node_id] for node_id in ids]
        look = self._look(ids)
        facts = [html(_shapes(nodes[0].forward_outputs))] if nodes[0].forward_outputs else []
        facts += [look.fact] if look is not None and look.fact else []
        label = [f"<B>{html(chain_title(nodes))}</B>", small(" · ".join((*facts, format_count(len(nodes), "node"))))]
        tooltip = chain_tooltip([number_of(self.cut, node_id) for node_id in ids], nodes)
        return _painted(label, look, tooltip=tooltip, fillcolor=OTHER_FILL)

    def _look(self, ids: range) -> Look | None:
        return None if self.colouring is None else self.colouring.look(ids)

    def _closed(self, scope: Scope) -> str:
        label = [self._scope_name(scope), small(self._scope_size(scope, node_ids(scope)))]
        look = None if scope.copies else self._look(node_ids(scope))
        if look is not None:
            label += [small(look.fact)] if look.fact else []
        elif self.colouring is not None:
            label.append(self._strip(copy_ranges(scope)))
        tooltip = call_tooltip(self.graph, scope, "" if look is None else look.words)
        fill = CLOSED_FILL if self.colouring is None else NEUTRAL_FILL
        return _painted(label, look, shape="folder", fillcolor=fill, color=CLOSED_LINE, tooltip=tooltip)

    def _strip(self, copies: Sequence[range]) -> str:
        """Write a row of small cells, one a copy, or some of them evenly chosen."""
        colouring = self.colouring
        if colouring is None:
            return ""
        shown = min(len(copies), MAX_STRIP)
        looks = [colouring.look(copies[index * (len(copies) - 1) // max(shown - 1, 1)]) for index in range(shown)]
        cells = "".join(
            f'<TD WIDTH="13" BGCOLOR="{look.fill}">{small(f"{look.mark}&#160;", look.ink)}</TD>' for look in looks
        )
        table = '<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="1" COLOR="#777777">'
        return f"{table}<TR>{cells}</TR></TABLE>"

    def _copies(self, box: Box) -> str:
        copies = () if box.scope is None else box.scope.copies
        label = [f"<B>{len(copies):,} more like this</B>"]
        calls = [self._call_of(items) for items in (copies[0], copies[-1])]
        if calls[0] is not None and calls[1] is not None:
            label.append(small(_between(calls[0], calls[1])))
        label.append(small(self._size(box.ids)))
        label.append(self._strip([] if box.scope is None else copy_ranges(box.scope)[1:]))
        fill = COPIES_FILL if self.colouring is None else NEUTRAL_FILL
        return _boxed(label, style="filled,dashed", fillcolor=fill, color=COPIES_LINE, penwidth=1.3)

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


def cut_stub(count: int) -> str:
    """Write the attributes of the end of edges that a focus has cut."""
    label = small(f"{format_count(count, 'edge')} cut", CUT_LINE)
    tooltip = quoted("leads to or comes from what is left out")
    return _boxed([label], shape="plain", style="", tooltip=tooltip)


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


def _painted(lines: Sequence[str], look: Look | None, **values: str | float) -> str:
    """Fill a box by what flows through it: all its text of one ink, its border of its kind unless the look has one."""
    if look is None:
        return _boxed(lines, **values)
    style = ",".join(filter(None, (str(values.get("style", "filled,rounded")), look.style)))
    border: dict[str, str | float] = {} if look.line is None else {"color": look.line, "penwidth": 2}
    painted = {**values, "style": style, "fillcolor": look.fill, "fontcolor": look.ink, **border}
    return _boxed([without_colours(line) for line in lines], **painted)


def _boxed(lines: Sequence[str], **values: str | float) -> str:
    """Write lines one above the other. Graphviz takes text or tables in a label, so a table makes all of it one."""
    written = list(filter(None, lines))
    if any("<TABLE" in line for line in written):
        rows = "".join(f"<TR><TD>{line}</TD></TR>" for line in written)
        label = f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0">{rows}</TABLE>'
    else:
        label = "<BR/>".join(written)
    return attributes(label=f"<{label}>", **values)
