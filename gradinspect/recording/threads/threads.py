"""What one thread did while it was recorded: its module calls and torch functions, by its own sequence numbers.

NOTE [Numbers of a node]
torch counts the nodes of each thread apart: those of a worker thread, and those that a device's thread makes during
backward, begin at 0 again. So a number alone names a node of the recorded thread only. Any other node is marked when it
is made, by an entry of its `metadata` that lives as long as the node, with the number of its thread; what one backward
call made on devices counts as a thread of its own. Together they are one integer: `thread * THREAD_SPAN + number`.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from gradinspect.torch_api.nodes import UNKNOWN_NR, next_sequence_nr

NOWHERE = -1


class ModuleWindow(NamedTuple):
    """One call of one module, with the counter before and after it."""

    start: int
    end: int  # NOWHERE while it runs
    module: int  # index into Recorder.modules
    parent: int  # index of the enclosing window, or NOWHERE


class EngineRecord(NamedTuple):
    """One backward call, for what it makes on devices, or on a thread that is not recorded."""

    frame: int | None
    thread: int  # of the call
    window: int  # of the module that was running there, or NOWHERE


class EngineSpan(NamedTuple):
    """The numbers that a thread of the engine gave to nodes during one backward call."""

    start: int
    end: int
    call: EngineRecord


class ThreadRecord:
    """Windows of one thread. NOTE [Windows of the sequence number] in `recorder`."""

    def __init__(self) -> None:
        """Start empty, on the thread itself."""
        self.first = self.latest = next_sequence_nr()  # the numbers that were seen begin here, and end before
        self.module_windows: list[ModuleWindow] = []
        self.open_windows: list[int] = []  # their indices, the innermost last
        self.outermost: dict[int, None] = {}  # the modules that no other one called, in that order
        self.call_starts = array("q")
        self.call_ends = array("q")  # ascending: nested calls are not recorded
        self.call_frames = array("q")  # frame number, or NOWHERE
        self.applied_numbers = array("q")  # of the nodes of custom Functions, ascending
        self.applied_frames = array("q")  # frame number, or NOWHERE
        self.applied_classes: list[ReferenceType[type]] = []  # of the nodes
        self.listed = array("q")  # ends of those calls of which all results were remembered, ascending
        self.spans: list[EngineSpan] = []  # of a thread of the engine, ascending
        self.mode: Any = None  # ours, on the stack of this thread; None for the recorded one
        self.num_above: int | None = None  # modes above it, if it was taken off for compiled code
        self.compiled_from = 0  # the number before that code
        self.engine_notes: Any = None  # of the backward call that runs here
        self.num_nested = 0  # the backward calls inside that one, which this thread of the engine is in
        self.is_visited = False  # it ran before, and has our mode only while a module runs

    def enter(self, module: int) -> None:
        """Open the window of a module."""
        parent = self.open_windows[-1] if self.open_windows else NOWHERE
        if parent == NOWHERE:
            self.outermost[module] = None
        self.open_windows.append(len(self.module_windows))
        self.module_windows.append(ModuleWindow(next_sequence_nr(), NOWHERE, module, parent))

    def leave(self, module: int) -> None:
        """Close the window of a module, and of those inside that never returned."""
        while self.open_windows:
            index = self.open_windows.pop()
            window = self.module_windows[index]
            self.module_windows[index] = window._replace(end=next_sequence_nr())
            if window.module == module:
                break

    @property
    def running_module(self) -> int | None:
        """The innermost module that is running."""
        return self.module_windows[self.open_windows[-1]].module if self.open_windows else None

    def window_of(self, sequence_nr: int) -> int:
        """Find the innermost window in which a node was made, or NOWHERE."""
        windows = self.module_windows
        index = bisect_right(windows, sequence_nr, key=lambda window: window.start) - 1
        while index != NOWHERE:
            window = windows[index]
            if window.end == NOWHERE or window.end > sequence_nr:
                return index
            index = window.parent
        return NOWHERE

    def is_in_call(self, sequence_nr: int) -> bool:
        """Return whether a torch function made a node, rather than what has no window."""
        index = bisect_right(self.call_ends, sequence_nr)
        return index < len(self.call_ends) and self.call_starts[index] <= sequence_nr

    def is_listed(self, sequence_nr: int) -> bool:
        """Return whether a torch function of which all results are known made the node of that number."""
        if not self.is_in_call(sequence_nr):
            return False
        end = self.call_ends[bisect_right(self.call_ends, sequence_nr)]
        place = bisect_left(self.listed, end)
        return place < len(self.listed) and self.listed[place] == end

    def is_in_gap(self, sequence_nr: int) -> bool:
        """Return whether this thread made a node of that number, but no torch function that was seen did."""
        return self.first <= sequence_nr < self.latest and not self.is_in_call(sequence_nr)

    def add_call(self, start: int, end: int, frame: int | None) -> None:
        """Add the window of a torch function."""
        self.call_starts.append(start)
        self.call_ends.append(end)
        self.call_frames.append(NOWHERE if frame is None else frame)

    def note_span(self, start: int, end: int, call: EngineRecord) -> None:
        """Note that a backward call has made nodes here: from its first torch function to its last one so far."""
        self.latest = end
        if self.spans and self.spans[-1].call is call:
            start = self.spans.pop().start
        self.spans.append(EngineSpan(start, end, call))

    def call_of(self, sequence_nr: int) -> EngineRecord | None:
        """Return the backward call that made a node on this thread of the engine, if it is known."""
        index = bisect_right(self.spans, sequence_nr, key=lambda span: span.start) - 1
        return self.spans[index].call if index >= 0 and sequence_nr < self.spans[index].end else None

    def add_applied(self, number: int, kind: type, frame: int | None) -> None:
        """Add the node of a custom Function and the line that applied it. NOTE [Applied Functions] in `nodes`."""
        if not (self.applied_numbers[-1] if self.applied_numbers else self.first - 1) < number < UNKNOWN_NR:
            return  # this thread has ended, and another one has its identifier; or this torch has no numbers
        self.applied_numbers.append(number)
        self.applied_frames.append(NOWHERE if frame is None else frame)
        self.applied_classes.append(ref(kind))

    def has_applied(self, number: int, kind: type) -> bool:
        """Return whether this thread made a node of that number and class by applying a custom Function."""
        index = self._applied_at(number)
        return index is not None and self.applied_classes[index]() is kind

    def _applied_at(self, number: int) -> int | None:
        index = bisect_left(self.applied_numbers, number)
        is_there = index < len(self.applied_numbers) and self.applied_numbers[index] == number
        return index if is_there else None

    def frame_of(self, sequence_nr: int) -> int | None:
        """Find the line that made a node, by the node's number in this thread."""
        applied = self._applied_at(sequence_nr)
        if applied is not None:
            frame = self.applied_frames[applied]
            return None if frame == NOWHERE else frame
        index = bisect_right(self.call_ends, sequence_nr)
        if index == len(self.call_ends) or self.call_starts[index] > sequence_nr:
            return None
        frame = self.call_frames[index]
        return None if frame == NOWHERE else frame
