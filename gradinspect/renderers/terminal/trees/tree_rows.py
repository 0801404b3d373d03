"""One row of the outline: the text between the guides and the columns on the right.

What comes in: rows of `analyses.structure.outline`. What goes out: parts of text with styles.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from types import MappingProxyType

from gradinspect.analyses.memory.odd_copies import OddCopies
from gradinspect.analyses.structure.call_names import class_beside, leaf_shown, name_of_call
from gradinspect.analyses.structure.copy_ranges import calls_of_blocks, copy_ranges, format_bytes_between
from gradinspect.analyses.structure.cut import Cut, lost_places, number_of, uses_in_whole
from gradinspect.analyses.structure.devices import Crossing, crossings, ends_of
from gradinspect.analyses.structure.folding import Scope, ids_of_copy, later_copies, node_ids, place_of_call
from gradinspect.analyses.structure.name_folding import elements_together
from gradinspect.analyses.structure.node_names import function_words
from gradinspect.analyses.structure.outline import leaves_of
from gradinspect.analyses.structure.outline_rows import Link, Row
from gradinspect.analyses.structure.shape_chains import chain_title
from gradinspect.analyses.structure.skips import skip_edges
from gradinspect.graph import Graph, Node, Root, TensorInfo, argument_name
from gradinspect.renderers.terminal.text import Part, listed_within, visible
from gradinspect.renderers.terminal.trees.tree_words import ASCII_SYMBOLS, Symbols, call_names, input_nrs, module_names
from gradinspect.units import format_count, format_flops, format_tensor

MAX_REFERENCES = 3
MAX_INPUTS = 4
MAX_SHAPES = 2
MAX_CELLS_OF_NAMES = 40  # of the calls in one copy of a repeat
NO_IDS = range(0)


class RowWriter:
    """Writes rows of one graph."""

    def __init__(
        self,
        graph: Graph,
        saved: Sequence[int],
        *,
        unicode: bool,
        cut: Cut | None = None,
        between: Mapping[range, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        """Prepare.

        Args:
            graph: The graph.
            saved: Bytes for each node, from `held_bytes_by_node`.
            unicode: Whether the output can show more than ASCII.
            cut: What is missing, if the graph is part of another.
            between: The least and the most bytes of what stands for its copies.
        """
        self.graph = graph
        self.between = between
        self.cut = cut
        self.saved = saved
        self.unicode = unicode
        self.symbols = Symbols() if unicode else ASCII_SYMBOLS
        self.uses: Counter[int] = uses_in_whole(graph, cut)
        self.roots: dict[int, list[Root]] = {}
        for root in graph.roots:
            self.roots.setdefault(root.node, []).append(root)
        self.root_nodes = sorted(self.roots)
        self.crossings = crossings(graph)
        self.odd_copies = OddCopies(graph, saved)

    def parts(self, row: Row) -> Iterator[Part]:
        """Yield the parts of a row."""
        if row.scope is not None:
            yield from self._scope(row, row.scope)
        elif row.kind == "node":
            yield from self._nodes(row)
        else:
            if not row.links and not row.guides:
                yield from self._root_label([link.edge.next_node for link in row.targets])
            yield from self._label(row.links)
            yield Part(f"{self.symbols.arrow} " if row.kind == "reference" else "")
            yield from self._ends(row.targets)

    def inputs(self, sources: Sequence[int]) -> Iterator[Part]:
        """Yield the nodes whose outputs a forward op took, and the leaves."""
        for number, source in enumerate(sources[:MAX_INPUTS]):
            yield Part(", " if number else f"  {self.symbols.back} ", "dim", can_wrap=True)
            leaf = self.graph.nodes[source].leaf
            if leaf is None:
                yield Part(self._number(source), "cyan", can_wrap=True)
            else:
                name = self._visible(leaf_shown(self.graph, leaf) or self._number(source))
                mark = f"{self.symbols.leaf} "
                brief = mark + self.ends_of_leaves.get(name, name)
                yield Part(mark + name, "yellow", can_shrink=True, can_wrap=True, brief=brief)
        if len(sources) > MAX_INPUTS:
            yield Part(f" and {len(sources) - MAX_INPUTS:,} more", "dim", can_wrap=True)

    def _nodes(self, row: Row) -> Iterator[Part]:
        yield from self._root_label([row.nodes[0]])
        yield from self._row_label(row, row.nodes[0])
        for number, node_id in enumerate(row.nodes):
            node = self.graph.nodes[node_id]
            yield Part(f" {self.symbols.arrow} " if number else "")
            yield Part(f"{self._number(node_id)} ", "cyan")
            name = self._visible(node.name)
            yield Part(name, "bold", can_shrink=True, brief=name.removesuffix("Backward0"), is_brief_last=True)
            if not row.ends_in_leaf:
                shapes = f"  {self._shapes(node.forward_outputs)}"  # the first to go where the class would be cut
                yield Part(shapes, "green", is_optional=True, brief=shapes, is_brief_last=True)
            yield from self._marks(node_id, node)
            yield from self._devices(self.crossings.get(node_id, ()))
        if row.targets:
            yield Part(f" {self.symbols.arrow} ")
            yield from self._ends(row.targets)
        if row.call is not None:
            call = self.graph.modules[row.call]
            yield Part("  ")
            name = self._visible(name_of_call(self.graph, call))
            yield Part(name, "yellow", can_shrink=True, brief=self.ends_of_calls.get(name, name))
            if class_name := class_beside(call.path, call.class_name):
                yield Part(f" {self._visible(class_name)}", is_optional=True)
        for node_id in row.nodes:
            yield from self._nones(node_id)
        yield from self._cut_edges(row.nodes)

    def _marks(self, node_id: int, node: Node) -> Iterator[Part]:
        function = function_words(self.graph, node_id)
        if function is not None:
            yield Part(f"  {self._visible(function)}", "magenta", can_shrink=True, can_wrap=True)
        if node.made_by is not None:
            yield Part(f"  by {self._visible(node.made_by)}", "dim", is_optional=True)
        if node.forward is not None:
            yield Part(f"  of {self._visible(node.forward)}", "dim", is_optional=True)
        if node.is_recomputed:
            flops = f", {format_flops(node.backward_flops)} FLOPs" if node.backward_flops else ""
            yield Part(f"  computed again{flops}", "magenta", is_optional=True)
        for status, count in sorted(Counter(value.status for value in node.saved).items(), key=str):
            if status not in (None, "live"):
                yield Part(f"  {count} {status}", "red", can_wrap=True)
        if node.hooks:
            yield Part(f"  {format_count(len(node.hooks), 'hook')}", "magenta", can_wrap=True)

    def _devices(self, found: Iterable[Crossing]) -> Iterator[Part]:
        """Name the other devices that gradients go to."""
        if ends := ends_of(found):
            yield Part(f"  to {self._visible(', '.join(ends))}", "magenta", can_wrap=True)

    def _nones(self, node_id: int) -> Iterator[Part]:
        lost = lost_places(self.cut, node_id)
        edges = enumerate(self.graph.nodes[node_id].next_edges)
        nones = [position for position, edge in edges if edge is None and position not in lost]
        for positions, word in ((nones, "None"), (lost, "cut")):
            if positions:
                yield Part(f"  {self._visible(self._arguments(node_id, positions))}: {word}", "dim", can_wrap=True)

    def _arguments(self, node_id: int, positions: Sequence[int]) -> str:
        node = self.graph.nodes[node_id]
        names = [argument_name(self.graph, node, position) or f"[{position}]" for position in positions]
        return ", ".join(names) if len(names) <= 2 else f"{len(names)} inputs"

    def _cut_edges(self, ids: Iterable[int], *, is_closed: bool = False) -> Iterator[Part]:
        """Count the edges that the focus has cut, including outgoing edges of nodes that have no row."""
        came, lead = (0, 0) if self.cut is None else self.cut.num_lost(ids)
        if came:
            yield Part(f"  {self.symbols.back} {came:,} cut", "dim", can_wrap=True)
        if lead and is_closed:
            yield Part(f"  {self.symbols.arrow} {lead:,} cut", "dim", can_wrap=True)

    def _scope(self, row: Row, scope: Scope) -> Iterator[Part]:
        ids = node_ids(scope)
        yield from self._root_label(ids, ids_of_copy(scope, row.copy or 0) if row.is_open else NO_IDS)
        yield from self._row_label(row, ids.start)
        if scope.kind != "shapes":
            yield Part(f"{self.symbols.opened if row.is_open else self.symbols.closed} ")
        times = len(scope.copies) + 1
        if row.copy is not None:
            yield Part(f"{row.copy + 1:,} of {times:,} ", "bold")
        elif times > 1:
            yield Part(f"{self.symbols.times}{times:,} ", "bold")
        if row.copy is not None:
            ids = ids_of_copy(scope, row.copy)
        first, last = self._number(ids.start), self._number(ids.stop - 1)
        span = first if len(ids) == 1 else f"{first}{self.symbols.to}{last[1:]}"
        yield Part(f"{span}  ", "cyan")
        name = list(self._scope_name(scope, row.copy))
        yield from name
        yield from self._scope_size(scope, times, "  " if name else "", is_open=row.is_open)
        if row.targets:
            yield Part(f"  {self.symbols.arrow} ", can_wrap=True)
            yield from (part._replace(can_wrap=True) for part in self._ends(row.targets))
        if not row.is_open:
            yield from self._skips(ids)
            found = (one for node_id in ids for one in self.crossings.get(node_id, ()) if one.head not in ids)
            yield from self._devices(found if self.crossings else ())
        yield from self._cut_edges(later_copies(scope) if row.is_open else ids, is_closed=True)

    def _skips(self, ids: range) -> Iterator[Part]:
        """Name the residual connections that leave a collapsed block, as the argument of their sum and the target."""
        for tail, position in sorted(skip_edges(self.graph, ids))[:MAX_REFERENCES]:
            node = self.graph.nodes[tail]
            edge = node.next_edges[position]
            if edge is not None:
                name = self._visible(argument_name(self.graph, node, position) or f"[{position}]")
                yield Part(
                    f"  {name}: {self.symbols.arrow} {self._number(edge.next_node)} skip", "magenta", can_wrap=True
                )

    def _scope_name(self, scope: Scope, copy: int | None) -> Iterator[Part]:
        """Name a chain of views by its ops, a module by its call, and a repeat by its first and last call."""
        if scope.kind == "shapes":
            title = chain_title([self.graph.nodes[node_id] for node_id in node_ids(scope)], f" {self.symbols.arrow} ")
            yield Part(self._visible(title), "bold", can_shrink=True)
            return
        bodies = (scope.items, *scope.copies) if copy is None else ((scope.items, *scope.copies)[copy],)
        place = place_of_call(scope)
        calls = [scope] if scope.kind == "module" else [] if place is None else [body[place] for body in bodies]
        modules = [call.module for call in calls if isinstance(call, Scope) and call.module is not None]
        if not modules:
            several = calls_of_blocks(self.graph, scope, slice(None) if copy is None else slice(copy, copy + 1))
            names = [self._visible(module_names(self.graph, calls, self.symbols.ellipsis)) for calls in several]
            if names:
                text = listed_within(names, MAX_CELLS_OF_NAMES, lambda rest: f"{rest:,} more", least=2)
                class_name = f"  {self._visible(several[0][0].class_name)}" if len(names) == 1 else ""
                yield Part(text + class_name, "bold yellow", can_shrink=True)
            return
        name = call_names(self.graph, [self.graph.modules[module] for module in modules], self.symbols.ellipsis)
        yield Part("with " if scope.kind == "repeat" and len(scope.items) > 1 else "", "dim")
        yield Part(self._visible(name), "bold yellow", can_shrink=True)
        first = self.graph.modules[modules[0]]
        if class_name := class_beside(first.path, first.class_name):
            text = f"  {self._visible(class_name)}"
            yield Part(text, "bold", is_optional=True, brief=text)  # whole, or not at all

    def _scope_size(self, scope: Scope, times: int, gap: str, *, is_open: bool) -> Iterator[Part]:
        ids = node_ids(scope)
        if times > 1:
            sizes = [sum(self.saved[copy.start : copy.stop]) for copy in copy_ranges(scope)]
            held = f", {format_bytes_between(min(sizes), max(sizes))}" if max(sizes) else ""
            count = gap + format_count(scope.num_nodes // times, "node")
            yield Part(f"{count}{held} each", "dim", is_optional=True, brief=f"{count} each")
            if odd := self.odd_copies.words(scope):
                yield Part(f"  {self._visible(odd)}", "yellow", can_wrap=True)
            return
        if not is_open:
            shapes = self._shapes(self.graph.nodes[ids.start].forward_outputs)
            yield Part(gap + shapes, "green", is_optional=True)
            gap = "  "
        leaves = len(leaves_of(self.graph, scope))
        count = gap + format_count(scope.num_nodes, "node")
        yield Part(count, "dim", is_optional=True, brief=count)
        if leaves and not is_open:
            yield Part(f", {format_count(leaves, 'leaf', 'leaves')}", "dim", is_optional=True)

    def _root_label(self, ids: Sequence[int], with_rows: range = NO_IDS) -> Iterator[Part]:
        """Name the roots among some nodes, except those with a row of their own."""
        roots = [root for node_id in self._roots_among(ids) if node_id not in with_rows for root in self.roots[node_id]]
        if len(roots) > MAX_REFERENCES:
            are_some_below = any(node_id in with_rows for node_id in self._roots_among(ids))
            yield Part(f"{format_count(len(roots), 'more root' if are_some_below else 'root')}: ", "bold blue")
            return
        for root in roots:
            output = f" (output {root.output_nr})" if root.output_nr else ""
            name = " ".join(filter(None, ("root", self._visible(root.name or ""))))
            yield Part(f"{name}{output}: ", "bold blue", can_shrink=True)

    def _roots_among(self, ids: Sequence[int]) -> Sequence[int]:
        if isinstance(ids, range):  # a scope may be as large as the graph, and have as many roots
            return self.root_nodes[bisect_left(self.root_nodes, ids.start) : bisect_left(self.root_nodes, ids.stop)]
        return [node_id for node_id in dict.fromkeys(ids) if node_id in self.roots]

    def _row_label(self, row: Row, first_node: int) -> Iterator[Part]:
        is_branch = bool(row.guides) and row.guides[-1] in ("branch", "last_branch")
        is_special = len(row.links) > 1 or any(
            link.edge.input_nr or link.edge.next_node != first_node for link in row.links if link.position is not None
        )
        if is_branch or is_special:
            yield from self._label(row.links, input_nrs(row.links))

    def _label(self, links: Sequence[Link], input_nrs: str = "") -> Iterator[Part]:
        if not links or links[0].position is None:
            return
        names = [link.argument or f"[{link.position}]" for link in links]
        together = elements_together(names)
        if len(names) > MAX_REFERENCES:
            names[MAX_REFERENCES - 1 :] = [f"{len(links) - MAX_REFERENCES + 1} more"]
        yield Part(f"{self._visible(together or ', '.join(names))}{input_nrs}: ", "dim")

    def _ends(self, links: Sequence[Link]) -> Iterator[Part]:
        target = self.graph.nodes[links[0].edge.next_node]
        if target.kind == "accumulate_grad":
            yield from self._leaf(links[0].edge.next_node, target)
            return
        yield Part(", ".join(self._number(link.edge.next_node) for link in links[:MAX_REFERENCES]), "cyan")
        if len(links) == 1:
            yield Part(f" {self._visible(target.name)}", "dim", can_shrink=True)
            yield Part(input_nrs(links))
        if len(links) > MAX_REFERENCES:
            yield Part(f" and {len(links) - MAX_REFERENCES:,} more")

    def _leaf(self, node_id: int, node: Node) -> Iterator[Part]:
        name = leaf_shown(self.graph, node.leaf)
        yield Part(f"{self.symbols.leaf} ", "yellow")
        text = self._visible(name) if name else self._number(node_id)
        yield Part(text, "yellow", can_shrink=True, brief=self.ends_of_leaves.get(text, text))
        yield Part(f"  {self._shapes(node.forward_outputs)}", "green")
        if self.uses[node_id] > 1:
            yield Part(f"  used {self.symbols.times}{self.uses[node_id]:,}", "dim")
        if node.hooks:
            yield Part(f"  {format_count(len(node.hooks), 'hook')}", "magenta", can_wrap=True)

    @cached_property
    def ends_of_leaves(self) -> dict[str, str]:
        """The end of each leaf's name that no other leaf's has: `…mlp.weight`, or `…h.3.mlp.weight` of several."""
        return self._ends_apart(filter(None, (leaf_shown(self.graph, node.leaf) for node in self.graph.nodes)), 2)

    @cached_property
    def ends_of_calls(self) -> dict[str, str]:
        """The end of each module call's name that no other call's has."""
        return self._ends_apart((name_of_call(self.graph, call) for call in self.graph.modules), 1)

    def _ends_apart(self, names: Iterable[str], least: int) -> dict[str, str]:
        """Cut each name to the shortest end, of `least` parts or more, that no other one has, unless there is none."""
        left, ends = set(map(self._visible, names)), dict[str, str]()
        for num_parts in range(least, max((name.count(".") for name in left), default=0) + 2):
            cut = {name: self._end_of(name, num_parts) for name in left}
            times = Counter(cut.values())
            ends |= {name: end for name, end in cut.items() if times[end] == 1}
            left -= ends.keys()
        return ends

    def _end_of(self, name: str, num_parts: int) -> str:
        """Keep the end of a long name, which tells it from its neighbors; an index keeps its parent."""
        parts = name.split(".")
        start = len(parts) - num_parts
        while start > 0 and parts[start].isdigit():
            start -= 1
        return self.symbols.ellipsis + ".".join(parts[start:]) if start > 0 else name

    def _shapes(self, infos: Sequence[TensorInfo | None]) -> str:
        shown = [
            (text, len(list(same))) for text, same in groupby("?" if i is None else format_tensor(i) for i in infos)
        ]
        texts = [f"{count:,} {self.symbols.times} {text}" if count > 1 else text for text, count in shown[:MAX_SHAPES]]
        more = f" and {len(shown) - MAX_SHAPES} more" if len(shown) > MAX_SHAPES else ""
        return self._visible(", ".join(texts) + more)

    def _number(self, node_id: int) -> str:
        return f"#{number_of(self.cut, node_id)}"

    def _visible(self, text: str) -> str:
        return visible(text, unicode=self.unicode)
