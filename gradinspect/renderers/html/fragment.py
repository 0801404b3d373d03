"""A graph, findings or memory as a fragment of HTML, for the output of a notebook cell.

What comes in: records. What goes out: one `<div>` without scripts, so that it also works in an exported notebook and
where scripts are removed. Scopes are `<details>`, which expand in place. All colors are mixed from the color of the
text around it, so that it fits light and dark themes of any program.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from gradinspect.analyses.memory.held import HeldStorage, Memory
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, held_bytes_by_node
from gradinspect.analyses.structure.call_names import leaf_shown, short_name
from gradinspect.analyses.structure.copy_ranges import name_of_blocks, with_ranges
from gradinspect.analyses.structure.expansion import opens_to, readable_depth
from gradinspect.analyses.structure.folding import Item, Scope, fold_graph, node_ids
from gradinspect.analyses.structure.node_names import class_name_of
from gradinspect.analyses.summary import describe_capture, describe_edges, summarize
from gradinspect.checks.findings import Finding, Findings
from gradinspect.graph import Graph, Node, argument_name, source_of
from gradinspect.units import brief, format_bytes, format_count, format_held, format_share, format_tensor

MAX_BOXES = 600
END = "</div></details>"
MAX_ROWS = 20
MAX_TEXT = 120  # characters of a name


def graph_fragment(graph: Graph) -> str:
    """Draw a graph from the loss down: scopes collapsed unless they are small, to be expanded in place."""
    figures = summarize(graph)
    scope = fold_graph(graph)
    counts = f"{format_count(figures.nodes, 'node')}, {describe_edges(figures)}"
    held = format_held(figures.held_bytes, figures.weight_bytes)
    head = f"<b>{_text(describe_capture(graph))}</b><br><span class=d>{_text(f'{counts}. {held}')}</span>"
    warnings = "".join(f"<div>warning: {_text(warning, 500)}</div>" for warning in graph.warnings)
    return _fragment(head + warnings + "".join(_Boxes(with_ranges(graph, scope.items)).of(scope)))


def findings_fragment(found: Findings) -> str:
    """Write the report of `check`."""
    parts = "".join(map(_finding, found.findings))
    notes = "".join(f"<div class=d>{_text(note, 1000)}</div>" for note in found.notes)
    end = f"{found.headline} {found.scope}"
    style = "f" if found.findings or found.has_failed else "f k"
    return _fragment(f'{parts}{notes}<div class="{style}"><b>{_text(end)}</b></div>')


def memory_fragment(memory: Memory) -> str:
    """Write the largest storages that are held for backward."""
    held = sorted(
        (one for one in memory.storages if one.held_as not in IN_MEMORY_ANYWAY),
        key=lambda one: (-one.num_bytes, one.storage),
    )
    head = format_held(memory.extra_bytes, memory.total_bytes - memory.extra_bytes)
    rows = "".join(_storage_row(one, memory.extra_bytes) for one in held[:MAX_ROWS])
    rest = held[MAX_ROWS:]
    more = f"<div class=d>{len(rest):,} more, {format_bytes(sum(one.num_bytes for one in rest))}</div>" if rest else ""
    heads = "".join(f"<th>{name}</th>" for name in ("bytes", "%", "", "held as", "tensor", "saved by"))
    return _fragment(f"<b>{_text(head)}</b><table><tr>{heads}</tr>{rows}</table>{more}")


def text_fragment(text: str) -> str:
    """Show a report as it is printed."""
    return _fragment(f"<pre>{escape(text)}</pre>")


def _storage_row(one: HeldStorage, total: int) -> str:
    what = one.name or ("" if one.info is None else format_tensor(one.info))
    cells = (
        f"<td class=u>{format_bytes(one.num_bytes)}</td><td class=u>{format_share(one.num_bytes, total)}</td>"
        f'<td><i style="width:{round(100 * one.num_bytes / total) if total else 0}px"></i></td>'
    )
    savers = ", ".join(f"#{saver}" for saver in one.savers[:4]) + ("…" if len(one.savers) > 4 else "")
    return f"<tr>{cells}<td>{one.held_as}</td><td><code>{_text(what)}</code></td><td>{savers}</td></tr>"


def _finding(finding: Finding) -> str:
    places = "".join(
        f"<tr><td class=d>{_text(place.role)}</td><td>{_text(f'{place.file}:{place.line}')}</td>"
        f"<td><code>{_text(place.code)}</code></td></tr>"
        for place in finding.places
    )
    return (
        f"<div class=f><b>{_text(finding.code)}</b> {_text(finding.title)}<table>{places}</table>"
        f"<div>{_text(finding.text, 2000)}</div><div><b>do</b> {_text(finding.remedy, 2000)}</div></div>"
    )


class _Boxes:
    """Writes the boxes of one graph, with a loop: scopes may be nested as deep as a file says."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._held = held_bytes_by_node(graph)
        self._total = sum(self._held)
        self._left = MAX_BOXES

    def of(self, scope: Scope) -> Iterator[str]:
        """Yield the parts of a picture."""
        is_open, level = opens_to(readable_depth(scope)), 0
        waiting: list[Item | str] = [*reversed(self._joined(scope.items))]
        while waiting:
            current = waiting.pop()
            if isinstance(current, str):
                level -= current == END
                yield current
                continue
            self._left -= 1
            if self._left < 0:
                continue
            if isinstance(current, int):
                yield self._node(current, self._graph.nodes[current])
                continue
            opened = " open" if is_open(current, level) else ""
            yield f"<details{opened}><summary>{self._title(current)}</summary><div class=b>"
            level += 1
            waiting.append(END)
            waiting += reversed(self._joined(_body(current)))
        if self._left < 0:
            yield f"<div class=d>{-self._left:,} more boxes; save(graph, 'graph.html') has them all.</div>"

    def _joined(self, items: Sequence[Item]) -> list[Item | str]:
        """Put arrows between items; a dotted line where no gradient goes from one to the next."""
        joined: list[Item | str] = []
        for index, item in enumerate(items):
            if index:
                leads = self._leads(items[index - 1], item)
                joined.append("<div class=a></div>" if leads else '<div class="a x"></div>')
            joined.append(item)
        return joined

    def _leads(self, item: Item, following: Item) -> bool:
        ids, targets = node_ids(item), node_ids(following)
        edges = (edge for number in ids for edge in self._graph.nodes[number].next_edges)
        return any(edge is not None and edge.next_node in targets for edge in edges)

    def _title(self, scope: Scope) -> str:
        ids = node_ids(scope)
        held = self._bytes(scope.held_bytes)
        times = f" ×{len(scope.copies) + 1:,}" if scope.copies else ""
        last = f"–{ids.stop - 1}" if len(ids) > 1 else ""
        numbers = f"<span class=d>#{ids.start}{last}, {format_count(scope.num_nodes, 'node')}</span>"
        return f"{held}<b>{_text(self._name(scope))}{times}</b> {numbers}"

    def _name(self, scope: Scope) -> str:
        if scope.module is not None:
            call = self._graph.modules[scope.module]
            return f"{short_name(call.path, None, self._graph.model_name)}  {call.class_name}"
        return name_of_blocks(self._graph, scope) or ("repeated block" if scope.kind == "repeat" else "views")

    def _node(self, number: int, node: Node) -> str:
        leaves, others, nones = [], [], 0
        for position, edge in enumerate(node.next_edges):
            if edge is None:
                nones += 1
                continue
            leaf = self._graph.nodes[edge.next_node].leaf
            argument = argument_name(self._graph, node, position)
            label = f"{_text(argument)}: " if argument else ""
            if leaf is not None:
                shown = f"◆ {leaf_shown(self._graph, leaf) or f'#{edge.next_node}'}  {format_tensor(leaf.info)}"
                leaves.append(f"<span class=l>{label}{_text(shown)}</span>")
            elif edge.next_node != number + 1:
                others.append(f"{label}→ #{edge.next_node}")
        outputs = ", ".join(format_tensor(info) for info in node.forward_outputs[:4] if info is not None)
        statuses = dict.fromkeys(value.status for value in node.saved if value.status not in (None, "live"))
        marks = [*others, *map(str, statuses), *([f"{nones} None"] if nones else [])]
        line = source_of(self._graph, node)
        right = "  ".join(filter(None, (format_bytes(self._held[number]) if self._held[number] else "", line or "")))
        title = f"<span class=d>#{number}</span> <b>{_text(class_name_of(node))}</b> <code>{_text(outputs)}</code>"
        below = f"<div>{''.join(leaves)}<span class=d>{'  '.join(marks)}</span></div>" if leaves or marks else ""
        return f"<div class=n><span class=r>{_text(right)}</span>{title}{below}</div>"

    def _bytes(self, held: int) -> str:
        if not held:
            return ""
        share = format_share(held, self._total)
        return f"<span class=r>{format_bytes(held)}  {share}</span>"


def _body(scope: Scope) -> Sequence[Item]:
    """Return what is inside a scope; of a repeat of single calls, what is inside the first."""
    first = scope.items[0]
    is_lone = scope.kind == "repeat" and len(scope.items) == 1 and isinstance(first, Scope) and first.kind == "module"
    return first.items if is_lone and isinstance(first, Scope) else scope.items


def _fragment(body: str) -> str:
    style = (files("gradinspect.renderers") / "html" / "fragment.css").read_text(encoding="utf-8")
    return f'<div class="gi"><style>{style}</style>{body}</div>'


def _text(text: str, limit: int = MAX_TEXT) -> str:
    return escape(brief(text, limit)).encode(errors="backslashreplace").decode()
