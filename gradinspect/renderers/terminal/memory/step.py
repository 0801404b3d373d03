"""The memory of whole steps for the terminal: the verdict, the moment, what was alive, and the curve.

What comes in: a `StepMemory`. What goes out: lines that fit the terminal.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.cells import cell_len
from rich.text import Text

from gradinspect.analyses.memory.collectives import in_runs, last_step
from gradinspect.analyses.memory.step import (
    By,
    CurvePoint,
    FoldedGroup,
    Origin,
    PeakGroup,
    StepMemory,
    by_device,
    device_name,
    folded_groups,
    folded_room,
    is_accelerator,
    moment_name,
    needed_bytes,
    odd_group,
    peak_of,
    phase_name,
)
from gradinspect.analyses.selection.rows import ALL_ROWS, RowChoice
from gradinspect.analyses.structure.call_names import class_beside, shown_path
from gradinspect.analyses.structure.copy_ranges import format_bytes_between
from gradinspect.analyses.structure.name_folding import format_times
from gradinspect.renderers.terminal.page import Page
from gradinspect.renderers.terminal.text import cut_end
from gradinspect.units import format_beside, format_bytes, format_count, format_share

MAX_ROWS = 12
MAX_LABEL = 78  # cells: bytes stay near the names on a wide terminal
_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*#%"
_SHORT = {
    "setup": ("set",), "forward": ("fwd", "f"), "backward": ("bwd", "b"), "optimizer": ("opt", "o"),
    "after step": ("after",),
}  # fmt: skip
_TITLES = {
    "module": "by module", "line": "by line", "storage": "by storage", "phase": "by when made", "kind": "by kind",
}  # fmt: skip


class StepMemoryPage(Page):
    """Writes one page."""

    def lines(self, memory: StepMemory, limit: int | None, by: By, choice: RowChoice = ALL_ROWS) -> Iterator[Text]:
        """Yield the page; the tables have the rows of what is chosen."""
        yield self._line(_verdict(memory, limit), "bold")
        yield from self.paragraph(memory.made_up, "  ")
        yield from self.paragraph(memory.values_from, "  ")
        first, *others = by_device(memory)
        yield from self._moment(memory, first, limit)
        for note in memory.notes:  # above the figures whose meaning they change
            yield from self.paragraph(note, "  ")
        if limit is not None and memory.peak_bytes > limit:
            yield from self._room(memory, limit)
        if others:
            yield from self._devices(memory)
        yield from self._device(first, by, choice, " on " + memory.on if others else "")
        for other in others:
            if is_accelerator(other.on):
                yield Text()
                yield self._line(f"{other.on}: peak {format_beside(other.peak_bytes, limit)}", "bold")
                yield from self._moment(memory, other, limit)
                yield from self._device(other, by, choice, f" on {other.on}")
        yield from self._collectives(memory, choice.top)
        yield Text()
        yield from self.paragraph(f"Not counted: {', '.join(memory.not_counted)}.")

    def _moment(self, memory: StepMemory, one: StepMemory, limit: int | None) -> Iterator[Text]:
        """Yield what is allocated on a device, and when its peak was."""
        if one.device is not None:
            sizes = one.device.allocated_bytes, one.device.reserved_bytes
            allocated, reserved = (format_beside(size, limit) for size in sizes)
            where = one.on if memory.is_real else "CUDA"
            yield self._line(f"  on {where}: {allocated} allocated, {reserved} reserved", "bold")
        yield from (self._line(line) for line in _moment(one.at, memory.model_name, self.width))

    def _device(self, one: StepMemory, by: By, choice: RowChoice, where: str) -> Iterator[Text]:
        """Yield what was alive on one device."""
        peak = one.peak_bytes
        yield from self._table(f"at the peak{where}, by kind", folded_groups(one, "kind", choice), peak, choice)
        if by != "kind":
            yield from self._table(f"{_TITLES[by]}{where}", folded_groups(one, by, choice), peak, choice)
        yield from self._steps(one, where)

    def _devices(self, memory: StepMemory) -> Iterator[Text]:
        """Yield the peak of each device; they need not be at the same moment."""
        room = self._label_room
        yield Text()
        yield self._line("peak of each device", "bold")
        for one in by_device(memory):
            name = self.fit(f"{device_name(one.on)}  {moment_name(one.at)}", room)
            yield Text(f"  {name:<{room}}{format_bytes(one.peak_bytes):>12}")

    def _room(self, memory: StepMemory, limit: int) -> Iterator[Text]:
        excess = format_bytes(memory.peak_bytes - limit)
        yield Text()
        yield self._line(f"To fit, {excess} of this would have to go:", "bold")
        folded = folded_room(memory, limit)
        names = [f"{group.label}{self._copies(same)}: {group.detail}" for group, same in folded[:MAX_ROWS]]
        for (group, _), name in zip(folded, self.apart(names, self._label_room), strict=False):
            yield self._row(name, group.num_bytes, memory.peak_bytes)
        num_left = sum(len(same) for _, same in folded[MAX_ROWS:])
        if num_left:
            yield self._rest([group for group, _ in folded[MAX_ROWS:]], memory.peak_bytes, num_left)

    def _table(self, title: str, rows: Sequence[FoldedGroup], total: int, choice: RowChoice) -> Iterator[Text]:
        """Yield a title and a row per group."""
        num_rows = choice.top or MAX_ROWS
        yield Text()
        yield self._line(title, "bold")
        shown = self.apart([self._label(*row) for row in rows[:num_rows]], self._label_room)
        for (group, _), label in zip(rows, shown, strict=False):
            yield self._row(label, group.num_bytes, total)
        num_left = sum(len(same) for _, same in rows[num_rows:])
        if num_left:
            yield self._rest([group for group, _ in rows[num_rows:]], total, num_left)

    def _label(self, group: PeakGroup, same: Sequence[PeakGroup]) -> str:
        """Name a group; of equal blocks, say what each has, or which one is odd, if there is room."""
        class_name = class_beside(group.label, group.class_name)
        name = f"{group.label}  {class_name}".rstrip()
        label = f"{name}{self._copies(same)}  {group.detail}".rstrip()
        if len(same) == 1 or group.detail:
            return label
        sizes = [one.num_bytes for one in same]
        odd = odd_group(same)
        each = f"{format_bytes_between(min(sizes), max(sizes))} each"
        words = f"{odd.name}: {format_times(odd.times)} the others" if odd else each
        fitting = (text for text in (words, each) if cell_len(self.visible(f"{label}, {text}")) <= self._label_room)
        return ", ".join((label, *islice(fitting, 1)))

    def _copies(self, same: Sequence[PeakGroup]) -> str:
        return f" {self.times(len(same))}".rstrip()

    def _rest(self, groups: Sequence[PeakGroup], total: int, count: int) -> Text:
        return self._row(format_count(count, "other"), sum(group.num_bytes for group in groups), total)

    @property
    def _label_room(self) -> int:
        return min(max(self.width - 22, 10), MAX_LABEL)

    def _row(self, label: str, num_bytes: int, total: int) -> Text:
        room = self._label_room
        name = self.fit(label, room)
        return Text(f"  {name:<{room}}{format_bytes(num_bytes):>12}{format_share(num_bytes, total):>7}")

    def _steps(self, memory: StepMemory, where: str) -> Iterator[Text]:
        """Yield the curve, and one line a step."""
        yield Text()
        yield self._line(f"alive{where} over time", "bold")
        bars = max(self.width - 2, 10)
        yield from (Text(f"  {line}") for line in curve_lines(memory.curve, bars, unicode=self.unicode))
        for step in memory.steps:
            what = f"step {step.number}: peak {format_bytes(step.peak_bytes)} {phase_name(step.at.phase)}"
            yield self._line(f"  {what}, {format_bytes(step.end_bytes)} at its end")

    def _collectives(self, memory: StepMemory, top: int | None) -> Iterator[Text]:
        """Yield what a rank that is run alone sends in a step, in order."""
        sent = last_step(memory)
        if memory.place is None:
            return
        number = sent[0].step if sent else memory.asked
        total = sum(one.num_bytes for one in sent)
        yield Text()
        yield self._line(
            f"{format_count(len(sent), 'collective')} of step {number}, in order: {format_bytes(total)}", "bold"
        )
        runs = list(in_runs(sent))
        room = self._label_room
        for run in runs[: top or MAX_ROWS]:
            one = run.first
            where = shown_path(one.module, memory.model_name) if one.module else one.line
            op = f"{one.op} {self.times(run.times)}".rstrip()
            name = self.fit(f"{op}  {one.phase}  {where}".rstrip(), room)
            yield Text(f"  {name:<{room}}{format_bytes(run.num_bytes):>12}")
        rest = runs[top or MAX_ROWS :]
        if rest:
            name = format_count(sum(run.times for run in rest), "other")
            yield Text(f"  {name:<{room}}{format_bytes(sum(run.num_bytes for run in rest)):>12}")

    def _line(self, text: str, style: str = "") -> Text:
        return Text(cut_end(self.visible(text), self.width, self.ellipsis), style)


def curve_lines(points: Sequence[CurvePoint], num_bars: int, *, unicode: bool) -> list[str]:
    """Draw what was alive as one row of bars, and below it the phases, briefly where there is little room."""
    if not points:
        return []
    bars = _BARS if unicode else _PLAIN_BARS
    num_bars = min(num_bars, len(points))
    columns = [points[len(points) * n // num_bars : len(points) * (n + 1) // num_bars] for n in range(num_bars)]
    highest = max(1, *(point.num_bytes for point in points))
    heights = [max(point.num_bytes for point in column) for column in columns]
    row = "".join(bars[-(-height * (len(bars) - 1) // highest)] for height in heights)
    return [row, _phases([column[0] for column in columns])]


def _phases(points: Sequence[CurvePoint]) -> str:
    """Mark where each phase begins, if there is room for its name."""
    begins = [
        n
        for n, point in enumerate(points)
        if not n or (points[n - 1].step, points[n - 1].phase) != (point.step, point.phase)
    ]
    row = ""
    for place, end in zip(begins, [*begins[1:], len(points)], strict=True):
        names = (points[place].phase, *_SHORT.get(points[place].phase, ()), "")
        row += f"|{next(name for name in names if len(name) < end - place)}".ljust(end - place)
    return row.rstrip()


def _verdict(memory: StepMemory, limit: int | None) -> str:
    place, device = memory.place, memory.device
    source = memory.source if place is None else f"{memory.source}, rank {place.rank} of {place.world_size}"
    peak = peak_of(memory, limit)
    if limit is None:
        return f"Peak: {peak}, {source}"
    if needed_bytes(memory) <= limit:
        verdict = "It may fit" if memory.is_least else "It fits"
    else:
        is_between = device is not None and device.allocated_bytes <= limit
        verdict = "It may fit" if is_between else "It does not fit"
    return f"{verdict}: peak {peak}, limit {format_beside(limit, memory.peak_bytes)}, {source}"


def _moment(at: Origin, model: str, width: int) -> Iterator[str]:
    """Say when: phase, module, node, operator, then the line. A node says more than the operator that it runs."""
    module = at.module and f"module {shown_path(at.module, model)}"
    parts = [moment_name(at), module, at.node, at.op.removesuffix(".default")]
    line = f"  {', '.join(filter(None, parts))}"
    yield line if cell_len(line) <= width or not at.node else f"  {', '.join(filter(None, parts[:-1]))}"
    if at.line:
        yield f"  {at.line}  {at.code}".rstrip()
    if at.called_at:
        yield f"    called at {at.called_at}"
