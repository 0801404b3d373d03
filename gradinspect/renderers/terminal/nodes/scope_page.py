"""Everything known about one scope of a graph: a module call or a repeated block."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from gradinspect.analyses.structure.folding import Scope, ids_of_copy, node_ids
from gradinspect.graph import module_name
from gradinspect.renderers.terminal.nodes.panel_page import MAX_LISTED, PageLine, PanelPage
from gradinspect.renderers.terminal.page import GAP
from gradinspect.units import format_bytes, format_count

MAX_CLASSES = 8


class ScopePage(PanelPage):
    """Writes the pages of scopes."""

    def scope(self, scope: Scope, copy: int | None) -> Iterator[PageLine]:
        """Yield the page of a module call or a repeated block, or of one copy if the block is expanded."""
        ids = node_ids(scope) if copy is None else ids_of_copy(scope, copy)
        times = len(scope.copies) + 1
        call = self._call_of(scope, copy)
        if times > 1:
            which = "" if copy is None else f", this is copy {copy + 1:,}"
            yield self.short_line(f"repeated block {self.symbols.times}{times:,}{which}", "bold")
        if call is not None:
            module = self.graph.modules[call]
            yield self.short_line(f"{module_name(self.graph, module.path)}{GAP}{module.class_name}", "bold")
            yield from self.labeled("call", str(module.call) if module.call > 1 else "")
        yield from self.labeled("nodes", f"{len(ids):,}, #{ids.start} to #{ids.stop - 1}")
        yield from self.labeled("held", f"{format_bytes(scope.held_bytes)}{' by all copies' if times > 1 else ''}")
        yield from self.section("classes", self._classes(Counter(self.graph.nodes[node_id].name for node_id in ids)))
        targets = {edge.next_node for node_id in ids for edge in self.graph.nodes[node_id].next_edges if edge}
        outside = sorted(targets.difference(ids))
        leaves = [node_id for node_id in outside if self.graph.nodes[node_id].leaf is not None]
        users = {user for node_id in ids for user, _ in self.facts.users.get(node_id, ())}
        yield from self.section("leaves", self._listed(leaves))
        yield from self.section("gradients go to", self._listed(sorted(set(outside).difference(leaves))))
        yield from self.section("gradients come from", self._listed(sorted(users.difference(ids))))
        yield from self.section("nodes", self._listed(ids))

    def _call_of(self, scope: Scope, copy: int | None) -> int | None:
        if scope.kind == "module":
            return scope.module
        body = scope.copies[copy - 1] if copy else scope.items
        return body[0].module if len(body) == 1 and isinstance(body[0], Scope) else None

    def _classes(self, classes: Counter[str]) -> Iterator[PageLine]:
        for name, count in classes.most_common(MAX_CLASSES):
            yield self.short_line(f"{GAP}{count:,} {name}")
        if len(classes) > MAX_CLASSES:
            yield self.short_line(
                f"{GAP}{format_count(len(classes) - MAX_CLASSES, 'more class', 'more classes')}", "dim"
            )

    def _listed(self, node_list: Sequence[int]) -> Iterator[PageLine]:
        for node_id in islice(node_list, MAX_LISTED):
            yield self.link(node_id, "", "")
        yield from self.more(len(node_list))
