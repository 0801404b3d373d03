"""The boxes of a picture: labels and colors of nodes, chains, modules and repeats, as DOT attributes.

What comes in: boxes of a `Drawing`. What goes out: attribute lists.
"""

from collections.abc import Mapping, Sequence

from gradinspect.analyses.structure.copy_ranges import copy_ranges
from gradinspect.analyses.structure.folding import Scope, node_ids
from gradinspect.analyses.structure.node_names import function_words
from gradinspect.analyses.structure.shape_chains import chain_title
from gradinspect.graph import Node, TensorInfo
from gradinspect.renderers.picture.colors.looks import Look
from gradinspect.renderers.picture.dot.chips import Chips, leaves_of
from gradinspect.renderers.picture.dot.scene import Scene
from gradinspect.renderers.picture.dot.scopes import ScopeLabels
from gradinspect.renderers.picture.dot.text import address, attributes, boxed, html, quoted, small, without_colors
from gradinspect.renderers.picture.dot.tooltips import call_tooltip, chain_tooltip, node_tooltip
from gradinspect.renderers.picture.plan.parts import MAX_CHIPS, Box
from gradinspect.units import format_bytes, format_count, format_tensor

MAX_STRIP = 24  # copies of a repeat that are colored individually


class BoxWriter:
    """Writes the attributes of the boxes of one picture."""

    def __init__(self, scene: Scene, targets: Mapping[int, Sequence[Box]] | None = None) -> None:
        """Prepare for a picture.

        Args:
            scene: The picture.
            targets: The first node of a box -> where it leads to without an arrow, which is written into it.
        """
        self.scene = scene
        self.targets = targets or {}
        self.graph = scene.graph
        self.palette = scene.palette
        self.labels = ScopeLabels(scene.graph, scene.palette)
        self.chips = Chips(scene)

    def box(self, box: Box) -> str:
        """Write the attributes of a box."""
        match box.kind:
            case "node":
                return self._node(box)
            case "shapes":
                return self._chain(box.ids)
            case "closed" if box.scope is not None:
                return self._closed(box.scope)
            case "copies" if box.scope is not None:
                return self._copies(box.ids, box.scope)
        words = f"{self.labels.num_nodes(box.ids)} not drawn"
        label = [f"<B>{words}</B>"]
        label.append(self._quiet(self.labels.size(box.ids, with_nodes=False)))
        fill, line = self.palette.card, self.palette.cut
        label += self._targets(box.ids)
        return boxed(label, style="filled,dashed", fillcolor=fill, color=line, penwidth=1.5, tooltip=quoted(words))

    def cluster(self, scope: Scope, level: int) -> str:
        """Write the attributes of an expanded scope."""
        values: dict[str, str | float] = {
            "label": f"<{self.labels.name(scope)}  {self._quiet(self.labels.size_of_open(scope))}>",
            "tooltip": call_tooltip(self.graph, scope),
            "fillcolor": self._cluster_fill(level),
            "style": "filled,rounded",
            "color": self.palette.cluster_line,
        }
        if scope.copies:
            values |= {"style": "filled,rounded,bold", "color": self.palette.copies_line}
        return attributes(**values)

    def title(self, scope: Scope, level: int) -> str:
        """Write the title of an expanded scope as a node, on an opaque strip."""
        label = f"{self.labels.name(scope)}  {self._quiet(self.labels.size_of_open(scope))}"
        strip = f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="1" BGCOLOR="{self._cluster_fill(level)}">'
        return attributes(label=f"<{strip}<TR><TD>{label}</TD></TR></TABLE>>", shape="plain", style="")

    def _cluster_fill(self, level: int) -> str:
        fills = self.palette.clusters if self.scene.coloring is None else self.palette.plain_clusters
        return fills[min(level, len(fills) - 1)]

    def _node(self, box: Box) -> str:
        node_id = box.ids.start
        node = self.graph.nodes[node_id]
        label = [f"<B>{html(node.name)}</B>"]
        if box.scope is not None:
            label.insert(0, self.labels.name(box.scope))
        function = function_words(self.graph, node_id)
        if function is not None:
            label.append(small(html(function), self.palette.custom_line if is_custom(node) else self.palette.quiet))
        elif node.kind not in ("generated", "custom"):
            label.append(self._quiet(node.kind.replace("_", " ")))
        look = self.scene.look(box.ids)
        held = self.labels.held_bytes(box.ids)
        facts = _facts(look) or ([f"{format_bytes(held)} held"] if held else [])
        facts += self._number_of_leaves(node)
        label += [self._quiet(" · ".join([*_output(node), *facts])), self._bar(box.ids)]
        label += self._targets(box.ids)
        tooltip = node_tooltip(self.graph, node_id, self.scene.number(node_id), "" if look is None else look.words)
        style = self._node_style(node)
        return _painted(label, look, rows=self._leaves(node), tooltip=self._with_leaves(tooltip, node),
                        **self._link(node), **style)  # fmt: skip

    def _chain(self, ids: range) -> str:
        nodes = [self.graph.nodes[node_id] for node_id in ids]
        look = self.scene.look(ids)
        facts = [*_output(nodes[0]), *_facts(look), format_count(len(nodes), "node")]
        facts += self._number_of_leaves(nodes[-1])
        label = [f"<B>{html(chain_title(nodes))}</B>", self._quiet(" · ".join(facts))]
        tooltip = self._with_leaves(chain_tooltip([self.scene.number(node_id) for node_id in ids], nodes), nodes[-1])
        label += self._targets(ids)
        rows, link = self._leaves(nodes[-1]), self._link(nodes[0])
        return _painted(label, look, rows=rows, tooltip=tooltip, fillcolor=self.palette.other, **link)

    def _targets(self, ids: range) -> list[str]:
        """Write lines of what a box leads to without an arrow."""
        written = (f"&#8594;&#160;{self._name(box)}" for box in self.targets.get(ids.start, ()))
        return [self._quiet(words) for words in dict.fromkeys(written)]

    def _name(self, box: Box) -> str:
        if box.scope is not None:
            return _more(box.scope) if box.kind == "copies" else self.labels.name(box.scope)
        node = self.graph.nodes[box.ids.start]
        return " ".join([f"<B>{html(node.name)}</B>", *_output(node)])

    def _leaves(self, node: Node) -> list[str]:
        options = self.scene.options
        return self.chips.rows(node) if options.is_compact and not options.counts_leaves else []

    def _number_of_leaves(self, node: Node) -> list[str]:
        number = len(leaves_of(self.graph, node)) if self.scene.options.counts_leaves else 0
        return [format_count(number, "leaf", "leaves")] if number else []

    def _with_leaves(self, tooltip: str, node: Node) -> str:
        """Add the tooltips of leaves that have no box of their own."""
        leaves = leaves_of(self.graph, node)[:MAX_CHIPS] if self.scene.options.is_compact else []
        words = r"\n".join(words[1:-1] for words in (tooltip, *map(self.chips.words, leaves)))
        return f'"{words}"'

    def _closed(self, scope: Scope) -> str:
        ids = node_ids(scope)
        size = self.labels.size_of_open(scope) if scope.copies else self.labels.size(ids)
        label = [self.labels.name(scope), self._quiet(size), self._odd_copy(scope), self._bar(ids)]
        look = None if scope.copies else self.scene.look(ids)
        if look is not None:
            label += [self._quiet(look.fact)] if look.fact else []
        elif self.scene.coloring is not None:
            label.append(self._strip(copy_ranges(scope)))
        tooltip = call_tooltip(self.graph, scope, "" if look is None else look.words)
        fill = self.palette.closed if self.scene.coloring is None else self.palette.plain
        line = self.palette.closed_line
        label += self._targets(ids)
        return _painted(label, look, shape="folder", fillcolor=fill, color=line, tooltip=tooltip)

    def _copies(self, ids: range, scope: Scope) -> str:
        more = _more(scope)
        label = [f"<B>{more}</B>"]
        label.append(self._quiet(self.labels.between(scope.copies) or self.labels.parts(scope, slice(1, None))))
        label.append(self._quiet(self.labels.size(ids)))
        label.append(self._odd_copy(scope))
        label.append(self._strip(copy_ranges(scope)[1:]))
        fill = self.palette.copies if self.scene.coloring is None else self.palette.plain
        line, words = self.palette.copies_line, quoted(more)
        label += self._targets(ids)
        return boxed(label, style="filled,dashed", fillcolor=fill, color=line, penwidth=1.3, tooltip=words)

    def _odd_copy(self, scope: Scope) -> str:
        """Name the copy of a repeat whose bytes are far from those of the others; nothing if there is none."""
        words = self.labels.odd_copies.words(scope)
        return self._quiet(html(words)) if words else ""

    def _bar(self, ids: range) -> str:
        """Draw the share of saved bytes, unless a coloring was requested."""
        return self.labels.bar(ids) if self.scene.coloring is None else ""

    def _strip(self, copies: Sequence[range]) -> str:
        """Write a row of small cells, one per copy, or evenly sampled copies."""
        coloring = self.scene.coloring
        if coloring is None:
            return ""
        shown = min(len(copies), MAX_STRIP)
        looks = [coloring.look(copies[index * (len(copies) - 1) // max(shown - 1, 1)]) for index in range(shown)]
        cells = "".join(
            f'<TD WIDTH="13" BGCOLOR="{look.fill}">{small(f"{look.mark}&#160;", look.ink)}</TD>' for look in looks
        )
        line = self.palette.card_line
        return (
            f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="1" COLOR="{line}"><TR>{cells}</TR></TABLE>'
        )

    def _node_style(self, node: Node) -> dict[str, str | float]:
        if is_custom(node):
            fill, line = self.palette.custom, self.palette.custom_line
            return {"shape": "hexagon", "style": "filled", "fillcolor": fill, "color": line, "margin": "0.02,0.02"}
        return {"fillcolor": self.palette.card if node.kind == "generated" else self.palette.other}

    def _link(self, node: Node) -> dict[str, str | float]:
        links = self.scene.options.links
        url = links[node.frame] if links and node.frame is not None else None
        return {} if url is None else {"URL": address(url), "target": "_blank"}

    def _quiet(self, markup: str) -> str:
        return small(markup, self.palette.quiet)


def _more(scope: Scope) -> str:
    return format_count(len(scope.copies), "more copy", "more copies")


def is_custom(node: Node) -> bool:
    """Return whether a node belongs to a custom autograd.Function."""
    return node.kind == "custom" or (node.function is not None and node.kind != "compiled")


def _facts(look: Look | None) -> list[str]:
    return [look.fact] if look is not None and look.fact else []


def _output(node: Node) -> list[str]:
    return [html(_shapes(node.forward_outputs))] if node.forward_outputs else []


def _shapes(infos: Sequence[TensorInfo | None]) -> str:
    first = "no tensor" if infos[0] is None else format_tensor(infos[0])
    return first if len(infos) == 1 else f"{first} + {len(infos) - 1} more"


def _painted(lines: Sequence[str], look: Look | None, rows: Sequence[str] = (), **values: str | float) -> str:
    """Fill a box by its look: one ink for all but its leaves, and the border of its kind unless the look has one."""
    if look is None:
        return boxed(lines, rows, **values)
    style = ",".join(filter(None, (str(values.get("style", "filled,rounded")), look.style)))
    border: dict[str, str | float] = {} if look.line is None else {"color": look.line, "penwidth": 2}
    painted = {**values, "style": style, "fillcolor": look.fill, "fontcolor": look.ink, **border}
    return boxed([*map(without_colors, lines)], rows, **painted)
