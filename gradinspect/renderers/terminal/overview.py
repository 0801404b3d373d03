"""The headlines of one run for the terminal, each with the command that shows more.

What comes in: an `Overview`. What goes out: some 24 lines, none wider than asked for.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.gradients.observed import (
    compiled_notes,
    fall_of,
    gradient_notes,
    parameter_rows,
    unmeasured_notes,
)
from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.rows import OUTSIDE, extra_storages, rows_by_line
from gradinspect.analyses.memory.step import (
    KIND_NAMES,
    KINDS,
    StepMemory,
    groups_by,
    is_accelerator,
    on_device,
    phase_name,
)
from gradinspect.analyses.memory.tree import ModuleBytes, contents_of_holder, module_tree
from gradinspect.analyses.structure.call_names import class_beside, shown_path
from gradinspect.analyses.structure.copy_ranges import format_bytes_between
from gradinspect.analyses.structure.name_folding import alike, format_times, name_by_indices, odd_one
from gradinspect.analyses.summary import summarize
from gradinspect.checks.findings import Finding, Findings, place_to_change
from gradinspect.checks.overview import OtherCall, Overview
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, ModuleCall, source_of
from gradinspect.renderers.terminal.compilation import format_compilation
from gradinspect.renderers.terminal.gradients.call import GradientsPage, number
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.renderers.terminal.text import cut_end, listed_within, wrap
from gradinspect.units import format_bytes, format_calls, format_count, format_held, format_share

LABEL_CELLS: Final = 11
MAX_HOLDERS: Final = 3
MAX_FINDINGS: Final = 3
MAX_FINDING_LINES: Final = 4  # of all that are shown
MAX_CALLS: Final = 3  # on other lines
MAX_CALL: Final = 48  # cells for each
MAX_NOTES: Final = 2
NEARLY_ALL: Final = 0.9  # a module with more than this share says little: what is inside of it is shown
MOST: Final = 0.5  # one with more than this is opened, too, where equal blocks are inside of it: these are one row
LONGEST_VERB: Final = "memory"
MANY: Final = 1_000_000  # cells: no line is wrapped
ONE_STEP: Final = "Not measured: a second step, in which the state of optimizers is there from the start."
NOT_CHECKED: Final = "A capture file shows one moment, and a check watches a program."


class OverviewPage(Page):
    """Writes one page."""

    def lines(self, found: Overview, source: str = "") -> Iterator[Text]:
        """Yield the page.

        Args:
            found: The headlines.
            source: What follows the verb on the command line, `train.py -- --lr 0.1`; "": no command is named.
        """
        graph, findings = found.graph, found.findings
        room = self.width - LABEL_CELLS
        given = self.visible(source)
        # No command is cut: what all have in common is at the end.
        if cell_len(f"gradinspect {LONGEST_VERB} {given}") > room:
            source = self.ellipsis
        yield from self.capture_lines(graph)
        yield from self._others(found.other_calls, names_option=bool(source))
        yield from self._part("graph", "trace", source, self._graph(found.whole))
        yield from self._part("memory", "memory", source, self._held(found.whole))
        checked = [NOT_CHECKED] if findings is None else self._checked(findings)
        yield from self._part("check", "check", source, checked)
        yield from self._part("gradients", "grads", source, self._gradients(graph))
        memory = found.step_memory
        peak = self._least(found) if memory is None else self._peak(memory, found.whole_steps)
        yield from self._part("peak", "fit", source if found.no_memory or memory else "", peak)
        if source == self.ellipsis:
            lines = wrap(given, room, break_on_hyphens=False)
            yield from (Text(f"{source if not index else '':<{LABEL_CELLS}}", "cyan").append(line, "dim")
                        for index, line in enumerate(lines))  # fmt: skip

    def other_calls(self, text: str) -> Iterator[Text]:
        """Yield which other calls could be shown; the overview itself has no option for that."""
        if text:
            yield Text(self.fit(f"{text}; trace --grad N shows one", self.width), "bold")

    def _others(self, calls: Sequence[OtherCall], *, names_option: bool) -> Iterator[Text]:
        """Yield where else the program calls backward, which is not looked at below."""
        lines = (f"#{call.number} {call.file.rpartition('/')[2]}:{call.line} {call.code}".rstrip() for call in calls)
        told = [cut_end(self.visible(line), MAX_CALL, self.ellipsis) for line in lines]
        if told:
            rest = [f"{len(told) - MAX_CALLS:,} more"] if len(told) > MAX_CALLS else []
            how = "; trace --backward N shows one" if names_option else ""
            yield from self.wrapped(f"also {', '.join([*told[:MAX_CALLS], *rest])}{how}", "bold")

    def _part(self, label: str, verb: str, source: str, lines: Sequence[str] | Iterator[str]) -> Iterator[Text]:
        """Yield a headline, its rows, and the command that shows more."""
        room = self.width - LABEL_CELLS
        shown = [part for line in lines for part in self._fitted(line, room)]
        more = [self.fit(f"gradinspect {verb} {source}", room)] if source else []
        for index, line in enumerate([*shown, *more]):
            text = Text(f"{'' if index else label:<{LABEL_CELLS}}", "cyan")
            yield text.append(line, "dim" if index == len(shown) else "default")

    def _fitted(self, line: str, room: int) -> list[str]:
        """Wrap a sentence; cut a row, which is indented."""
        return [self.fit(line, room)] if line.startswith(GAP) else wrap(self.visible(line), room)

    def _graph(self, graph: Graph) -> Iterator[str]:
        figures = summarize(graph)
        leaves = format_count(figures.leaves, "leaf", "leaves")
        yield f"{format_count(figures.nodes, 'node')}, {leaves}, depth {figures.max_depth:,}"
        sizes, inside = _num_nodes(graph), _contents(graph)
        blocks = alike(_outer_modules(graph, sizes, inside), lambda call: (call.path,), lambda call: inside[call.path])
        names = [
            self.visible(self._block([call.path for call in block], block[0].class_name, graph.model_name, " "))
            for block in sorted(blocks, key=lambda block: -sum(sizes[call.path] for call in block))
        ]
        yield listed_within(names, self.width - LABEL_CELLS, lambda rest: f"{rest:,} more", least=1)
        if graph.compilation is not None:
            yield format_compilation(graph.compilation)

    def _held(self, graph: Graph) -> Iterator[str]:
        try:
            held = measure_memory(graph)
        except GradInspectError as error:  # there are no bytes to count
            yield str(error)
            return
        total = held.extra_bytes
        yield format_held(total, held.total_bytes - total)
        room = self.width - LABEL_CELLS - 19
        rows = list(self._modules(graph, held, room))
        rows = rows or [(f"{row.label}{GAP}{row.detail}", row.num_bytes) for row in rows_by_line(graph, held)]
        rows = sorted(rows, key=lambda row: -row[1])[:MAX_HOLDERS]
        room = min(max((cell_len(self.visible(name)) for name, _ in rows), default=0), room)
        for text, (_, num_bytes) in zip(self.apart([name for name, _ in rows], room), rows, strict=True):
            filler = " " * (room - cell_len(text))
            yield f"{GAP}{text}{filler}{format_bytes(num_bytes):>11}{format_share(num_bytes, total):>6}"

    def _modules(self, graph: Graph, held: Memory, room: int) -> Iterator[tuple[str, int]]:
        """Yield a row for each module, equal blocks as one, with what each of them holds if there is room."""
        around, tree = _spread(_whole_tree(graph, held)) if graph.modules else (None, ())
        for group in alike(tree, lambda module: (module.path,), contents_of_holder):
            sizes = [module.total_bytes for module in group]
            if group[0].label == OUTSIDE:
                name = "(outside of these)" if around is not None else OUTSIDE
                line = _line_outside(graph, held, [module.path for module in tree if module.label != OUTSIDE])
                yield _longest((f"{name}, mostly {line}", name) if line else (name,), room), sum(sizes)
                continue
            name = self._block([module.path for module in group], group[0].class_name, graph.model_name)
            words = [name]
            if len(group) > 1:
                words.insert(0, f"{name}, {format_bytes_between(min(sizes), max(sizes))} each")
            if odd := odd_one(sizes):
                words.insert(
                    0, f"{name}, {shown_path(group[odd[0]].path, graph.model_name)}: {format_times(odd[1])} the others"
                )
            yield _longest([*map(self.visible, words)], room), sum(sizes)

    def _block(self, paths: Sequence[str], class_name: str, model: str, gap: str = GAP) -> str:
        """Name equal blocks, or one module: `h.0-11  Block ×12`."""
        times = f" {self.times(len(paths))}".rstrip()
        beside = class_beside(paths[0], class_name)
        return f"{shown_path(name_by_indices(paths), model)}{gap if beside else ''}{beside}{times}"

    def _checked(self, found: Findings) -> Iterator[str]:
        calls = format_calls(found.num_calls, found.num_grads)
        if found.findings:
            yield f"{format_count(len(found.findings), 'finding')} in {calls}:"
        elif found.has_failed:
            yield f"{found.headline} in {calls}."
        elif found.is_complete:
            yield f"No problems found in {calls}."
        else:
            yield f"No problems found in {calls}, but not all was looked at."
        own = {file.name for file in found.files}
        shown = found.findings[:MAX_FINDINGS]
        for finding in shown:
            yield from self._finding(_headline(finding, own), MAX_FINDING_LINES // len(shown))
        if len(found.findings) > MAX_FINDINGS:
            yield f"{GAP}{len(found.findings) - MAX_FINDINGS:,} more"
        yield from found.notes[: MAX_NOTES if not found.findings else 0]

    def _finding(self, headline: str, num_lines: int) -> Iterator[str]:
        """Yield a headline in a few lines; what has no room is at its end."""
        room = self.width - LABEL_CELLS - len(GAP)
        lines = wrap(self.visible(headline), room, subsequent_indent=2 * GAP, break_on_hyphens=False)
        last = " ".join([lines[num_lines - 1], *map(str.strip, lines[num_lines:])]) if lines[num_lines:] else ""
        shown = [*lines[: num_lines - 1], cut_end(last, room, self.ellipsis)] if last else lines
        yield from (f"{GAP}{line}" for line in shown)

    def _gradients(self, graph: Graph) -> Iterator[str]:
        if graph.gradients is None:
            yield "Not measured: backward did not run to its end."
            return
        notes = gradient_notes(graph)
        yield from (f"{note.kind}: {note.text}" for note in notes[:MAX_NOTES])
        if not any(note.kind in ("vanishing", "exploding") for note in notes):
            page = GradientsPage(width=MANY, unicode=self.unicode)
            fall = [str(line) for line in page.fall(fall_of(graph), graph.model_name)]
            yield from fall
            if not (fall or notes):
                yield _reached(graph)
        yield from (*compiled_notes(graph), *unmeasured_notes(graph))[:1]

    def _least(self, found: Overview) -> Iterator[str]:
        """Give a lower bound of the peak, and say why it was not measured."""
        least = found.least_memory
        if least is not None and least.num_bytes:
            place = f" on {least.on}" if is_accelerator(least.on) else ""
            yield f"At least {format_bytes(least.num_bytes)}{place} as {least.at}, measured"
            largest = sorted(least.by_kind.items(), key=lambda item: (-item[1], KINDS.index(item[0])))
            yield ", ".join(f"{format_bytes(size)} {KIND_NAMES[kind]}" for kind, size in largest[:MAX_HOLDERS] if size)
        yield found.no_memory

    def _peak(self, memory: StepMemory, num_steps: int) -> Iterator[str]:
        whole = format_count(num_steps, "whole step")
        yield f"{format_bytes(memory.peak_bytes)}{on_device(memory)} {phase_name(memory.at.phase)}, measured in {whole}"
        groups = groups_by(memory, "kind")
        yield ", ".join(f"{format_bytes(group.num_bytes)} {group.label}" for group in groups[:MAX_HOLDERS])
        if num_steps == 1:
            yield ONE_STEP


def _longest(words: Sequence[str], room: int) -> str:
    """Return the first that fits, or else the last."""
    return next((text for text in words if cell_len(text) <= room), words[-1])


def _line_outside(graph: Graph, held: Memory, paths: Sequence[str]) -> str:
    """Name the line that holds more than half of the bytes outside some modules; "" if none does."""
    inside = set[int | None]()
    for place, call in enumerate(graph.modules):  # a call comes after its enclosing call
        if call.path in paths or call.parent in inside:
            inside.add(place)
    sizes = Counter[str]()
    for storage in extra_storages(held):
        node = graph.nodes[storage.counted_by]
        if node.module not in inside:
            sizes[source_of(graph, node) or ""] += storage.num_bytes
    line, most = max(sizes.items(), key=lambda item: item[1], default=("", 0))
    return line.rpartition("/")[2] if 2 * most > sizes.total() else ""


def _reached(graph: Graph) -> str:
    rows = parameter_rows(graph)
    known = [row.stats.norm for row in rows if row.stats is not None]
    leaves = format_count(len(rows), "leaf", "leaves")
    size = f", norms {number(min(known))} to {number(max(known))}" if known else ""
    return f"{len(known):,} of {leaves} received a gradient{size}."


def _headline(finding: Finding, own: set[str]) -> str:
    place = place_to_change(finding, own)
    where = "" if place is None else f"{place.file}:{place.line}{GAP}"
    return f"{finding.code}{GAP}{where}{finding.title}"


def _spread(tree: Sequence[ModuleBytes]) -> tuple[str | None, Sequence[ModuleBytes]]:
    """Descend into the only module, or one that holds nearly all, or most of it in equal blocks, until none does.

    Returns:
        The path of the module around them, None if there is none, and the modules. All the rest is one row.
    """
    around: str | None = None
    outside = 0
    while True:
        modules = [module for module in tree if module.label != OUTSIDE and module.total_bytes]
        outside += sum(module.total_bytes for module in tree if module.label == OUTSIDE)
        largest = max(modules, key=lambda module: module.total_bytes, default=None)
        inside = _holders(largest)
        if largest is None or not inside:
            break
        share = largest.total_bytes / (sum(module.total_bytes for module in modules) or 1)
        blocks = alike(inside, lambda module: (module.path,), contents_of_holder)
        if not _is_opened(share, blocks):
            break
        others = [module for module in modules if module is not largest]
        if share > NEARLY_ALL:
            outside += sum(module.total_bytes for module in others)
            others = []
        outside += largest.own_bytes
        around, tree = largest.path, [*inside, *others]
    rest = ModuleBytes(label=OUTSIDE, path="", class_name="", total_bytes=outside)
    return around, [*modules, *([rest] if outside else [])]


def _whole_tree(graph: Graph, held: Memory) -> tuple[ModuleBytes, ...]:
    return module_tree(graph, held, folds=False, keeps_empty=True)


def _holders(module: ModuleBytes | None) -> list[ModuleBytes]:
    """List the submodules that hold something."""
    return [] if module is None else [inside for inside in module.children if inside.total_bytes]


def _is_opened(share: float, inside: Iterable[Sequence[object]]) -> bool:
    """Return whether the submodules say more than the name of the module; equal blocks are one group."""
    return share > NEARLY_ALL or (share > MOST and any(len(group) > 1 for group in inside))


def _outer_modules(graph: Graph, sizes: Counter[str], inside: Mapping[str, int]) -> list[ModuleCall]:
    """List the modules inside the outermost one, or several outermost ones, by their first calls.

    Instead of one with nearly all of the nodes, or with most of them in equal blocks, there are those inside of it.

    Args:
        graph: Any graph.
        sizes: The number of nodes inside of each path.
        inside: A number for each path, equal for equal blocks.
    """
    first = {call.path: call for call in reversed(graph.modules)}
    calls = [first[path] for path in dict.fromkeys(call.path for call in graph.modules)]
    level = [call for call in calls if call.parent is None]
    if len(level) == 1:
        level = [call for call in calls if call.parent is not None and graph.modules[call.parent].parent is None]
    called: dict[str, list[ModuleCall]] = {}
    for call in calls:
        if call.parent is not None:
            called.setdefault(graph.modules[call.parent].path, []).append(call)
    while level:
        largest = max(level, key=lambda call: sizes[call.path])
        share = sizes[largest.path] / (sum(sizes[call.path] for call in level) or 1)
        blocks = alike(called.get(largest.path, ()), lambda call: (call.path,), lambda call: inside[call.path])
        if largest.path not in called or not _is_opened(share, blocks):
            break
        level = [*called.pop(largest.path), *(call for call in level if call is not largest)]
    return level


def _contents(graph: Graph) -> dict[str, int]:
    """Return a number for each module, equal for those of one class that call the same modules."""
    numbers: dict[Hashable, int] = {}
    found: dict[str, int] = {}
    called: dict[str | None, dict[str, int]] = {}
    first = {call.path: call for call in reversed(graph.modules)}
    for call in reversed(graph.modules):  # a call comes after its enclosing call
        if call is first[call.path]:
            inside = called.get(call.path, {})
            looks = (call.class_name, frozenset(inside.items()))
            found[call.path] = numbers.setdefault(looks, len(numbers))
            parent = None if call.parent is None else graph.modules[call.parent].path
            called.setdefault(parent, {})[call.path.removeprefix(f"{parent}.")] = found[call.path]
    return found


def _num_nodes(graph: Graph) -> Counter[str]:
    """Count the nodes inside each module, in all of its calls."""
    inside = Counter(node.module for node in graph.nodes)
    sizes = Counter[str]()
    for place in reversed(range(len(graph.modules))):  # a call comes after its enclosing call
        call = graph.modules[place]
        inside[call.parent] += inside[place]
        sizes[call.path] += inside[place]
    return sizes
