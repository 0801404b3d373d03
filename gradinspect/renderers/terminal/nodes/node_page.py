"""Everything known about one node: edges, saved values, formulas, gradients, source, hooks."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.compiled import eager_words
from gradinspect.analyses.memory.saved_rows import SavedRow, saved_rows_of
from gradinspect.analyses.structure.call_names import leaf_shown, shown_path
from gradinspect.analyses.structure.node_names import function_words, hook_names
from gradinspect.graph import Leaf, Measured, Node, argument_name, module_name, stats_of
from gradinspect.renderers.facts import formula_lines
from gradinspect.renderers.terminal.gradients.call import number
from gradinspect.renderers.terminal.nodes.panel_page import MAX_LISTED, PageLine, PanelPage
from gradinspect.renderers.terminal.page import GAP
from gradinspect.units import format_bytes, format_share, format_tensor


class NodePage(PanelPage):
    """Writes the pages of nodes."""

    def node(self, node_id: int) -> Iterator[PageLine]:
        """Yield the page of a node."""
        node = self.graph.nodes[node_id]
        yield from self._head(node_id, node)
        if node.leaf is not None:
            yield from self._leaf(node.leaf)
        yield from self._place(node)
        yield from self._gradient(node_id)
        yield from self.section("gradients go to", self._edges(node_id, node))
        yield from self.section("gradients come from", self._users(node_id))
        rows = saved_rows_of(self.graph, node_id)
        yield from self.section("saved for backward", self._saved(rows))
        yield from self.section("formula", self._formulas(node))
        yield from self.section("source", self._source(node))
        yield from self.section("hooks", (self.short_line(f"{GAP}{hook}") for hook in hook_names(node)))

    def _head(self, node_id: int, node: Node) -> Iterator[PageLine]:
        outputs = "" if node.leaf is not None else self.outputs(node)
        line = Text().append(f"#{node_id} ", "cyan")
        line.append(self.fit(node.name, self.width - line.cell_len), "bold")
        if line.cell_len + cell_len(GAP + outputs) <= self.width:
            yield PageLine(line.append(f"{GAP}{outputs}", "green"))
        else:
            yield PageLine(line)
            yield from self.flowing(outputs, "green")
        for root in self.graph.roots:
            if root.node == node_id:
                output = f", output {root.output_nr}" if root.output_nr else ""
                yield self.short_line(f"root {root.name or ''}".rstrip() + output, "blue")
        function = function_words(self.graph, node_id)
        if function is not None:
            yield from self.labeled("function", function)
        if node.made_by is not None:
            yield from self.labeled("made by", f"the backward of {node.made_by}")

    def _leaf(self, leaf: Leaf) -> Iterator[PageLine]:
        yield self.short_line(f"{self.symbols.leaf} {leaf_shown(self.graph, leaf) or '(no name)'}", "yellow")
        yield self.short_line(f"{format_tensor(leaf.info)}{GAP}{leaf.kind}", "green")
        if leaf.aliases:
            aliases = (shown_path(alias, self.graph.model_name) for alias in leaf.aliases)
            yield from self.labeled("also", ", ".join(aliases))

    def _place(self, node: Node) -> Iterator[PageLine]:
        if node.module is not None:
            module = self.graph.modules[node.module]
            call = f", call {module.call}" if module.call > 1 else ""
            yield from self.labeled("module", f"{module_name(self.graph, module.path)}{GAP}{module.class_name}{call}")

    def _gradient(self, node_id: int) -> Iterator[PageLine]:
        ran = self.facts.gradients.get(node_id)
        if self.graph.gradients is None:
            return
        if ran is None:
            yield from self.labeled("gradient", "none: backward did not run this node")
            return
        several = len(ran.incoming) > 1
        for output, stats in enumerate(ran.incoming):
            yield from self.labeled(f"grad[{output}]" if several else "gradient", self._stats(stats))
        weight, update = (
            norms.get(node_id) for norms in (self.graph.gradients.weight_norms, self.graph.gradients.update_norms)
        )
        yield from self.labeled("weight", "" if weight is None else f"norm {number(weight)}")
        yield from self.labeled("update", "" if update is None else f"norm {number(update)}")

    def _stats(self, measured: Measured) -> str:
        stats = stats_of(measured)
        if stats is None:
            return "none" if measured is None else f"not measured: {measured}"
        parts = [f"norm {number(stats.norm)}", f"largest {number(stats.max_abs)}"]
        if stats.num_zeros:
            parts.append(f"{format_share(stats.num_zeros, stats.num_elements)} zeros")
        if stats.num_nonfinite:
            parts.append(f"{stats.num_nonfinite:,} of {stats.num_elements:,} not finite")
        return ", ".join(parts)

    def _edges(self, node_id: int, node: Node) -> Iterator[PageLine]:
        ran = self.facts.gradients.get(node_id)
        for position, edge in enumerate(node.next_edges[:MAX_LISTED]):
            name = argument_name(self.graph, node, position) or f"[{position}]"
            if edge is None:
                yield self.short_line(f"{GAP}{name}  None: requires no gradient", "dim")
                continue
            stats = stats_of(ran.outgoing[position] if ran is not None and position < len(ran.outgoing) else None)
            notes = [f"input_nr {edge.input_nr}"] if edge.input_nr else []
            notes += [f"norm {number(stats.norm)}"] if stats is not None else []
            yield self.link(edge.next_node, f"{name} {self.symbols.arrow} ", ", ".join(notes))
        yield from self.more(len(node.next_edges))

    def _users(self, node_id: int) -> Iterator[PageLine]:
        users = self.facts.users.get(node_id, [])
        for user, position in users[:MAX_LISTED]:
            name = argument_name(self.graph, self.graph.nodes[user], position) or f"[{position}]"
            yield self.link(user, "", f"for {name}")
        yield from self.more(len(users))

    def _saved(self, rows: Sequence[SavedRow]) -> Iterator[PageLine]:
        for row in rows[:MAX_LISTED]:
            looks = " ".join(filter(None, (row.value, "" if row.status == "live" else row.status, row.status_detail)))
            where = " ".join(filter(None, (row.origin, row.shown_origin, eager_words(row.kept_by_eager))))
            num_bytes = "" if row.num_bytes is None else format_bytes(row.num_bytes)
            line = Text(f"{GAP}{self.fit(row.attribute, self.width // 2)}{GAP}")
            rest = self.fit(GAP.join(filter(None, (looks, num_bytes, where))), self.width - line.cell_len)
            yield PageLine(line.append(rest, "green" if row.status in {None, "live"} else "red"))
        yield from self.more(len(rows))

    def _formulas(self, node: Node) -> Iterator[PageLine]:
        known = self.facts.explain(node.name)
        if known is None:
            return
        heads = {known.signature, known.text}
        for line in formula_lines(known):
            yield from self.flowing(line, "dim" if line in heads else "", indent=GAP)

    def _source(self, node: Node) -> Iterator[PageLine]:
        """Yield the line that made a node with its context, and the lines of its callers."""
        frame_id, is_first = node.frame, True
        while frame_id is not None:
            frame = self.graph.frames[frame_id]
            called = "" if is_first else "called at "
            inside = f" in {frame.function}" if frame.function else ""
            name = frame.file.rpartition("/")[2]
            heads = [f"{GAP}{called}{file}:{frame.line}" for file in (frame.file, name)]
            texts = (heads[0] + inside, heads[1] + inside, heads[1])  # the line number must stay visible
            fitting = (text for text in texts if cell_len(self.visible(text)) <= self.width)
            yield self.short_line(next(fitting, heads[1]), "" if is_first else "dim")
            lines = self.facts.read_source(frame.file) if is_first else None
            if lines is not None and frame.line <= len(lines):
                yield from (PageLine(line) for line in self.source(lines, frame.line))
            elif frame.code:
                yield self.short_line(f"{GAP}{GAP}{frame.code}", "" if is_first else "dim")
            frame_id, is_first = frame.caller, False
