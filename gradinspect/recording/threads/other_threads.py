"""Nodes that other threads made than the recorded one: which thread, and where.

NOTE [Marks]
Reading a node from Python gives it a wrapper for the rest of its life, and a chain of 45,000 such nodes cannot be freed
(NOTE [Walked graphs are freed recursively] in `release`). So of what a thread computes, no node is read until it
crosses to another thread. Which thread made a tensor is stored by the tensor; when a function on another thread takes
it, its node is marked (NOTE [Numbers of a node] in `threads`), and a walk passes the mark on along the edges, as far as
the next mark. What a backward call makes on devices has no tensor that Python sees: `engine_nodes` marks each of them.

NOTE [Threads that are not followed]
A function mode cannot be given to a thread that runs already, so what such a thread computes outside of modules has no
mark, and its numbers may be numbers of the recorded thread. Where one runs, the results of all functions on the
recorded thread are remembered. A tensor that a function there takes, with the number of such a call, and that is not
one of its results, was made elsewhere: its node is marked as unknown, with all that only it leads to.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sys import _current_frames
from threading import Lock, get_ident
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch

from gradinspect.graph import THREAD_SPAN, Edge
from gradinspect.recording.frames import FrameTable
from gradinspect.recording.threads.threads import NOWHERE, EngineRecord, ThreadRecord
from gradinspect.torch_api.nodes import (
    UNKNOWN_NR,
    is_python_node,
    next_sequence_nr,
    node_metadata,
    sequence_nr,
)
from gradinspect.torch_api.patching.classes import identities
from gradinspect.torch_api.tensors import grad_fn_here, plain_tensors_only
from gradinspect.torch_api.weak import HiddenRef

MOST_DEPTH = 4  # of containers in arguments
MOST_MARKED = 2_000  # outputs of modules; a chain of that length can be freed
OWN = 0  # the recorded thread
UNKNOWN = -1
_PACKAGE = f"{__name__.partition('.')[0]}."
_NO_TENSORS = identities(int, float, bool, str, type(None), torch.dtype, torch.device)
_PLAIN_TENSORS = identities(torch.Tensor, torch.nn.Parameter)
_NO_CLOCKS: Mapping[int, int] = MappingProxyType({})


OtherRecord: TypeAlias = ThreadRecord | EngineRecord


class Followed(Protocol):
    """A recording whose other threads are followed: what these files need of a `Recorder`."""

    is_active: bool
    frames: FrameTable
    others: "OtherThreads"

    @property
    def may_leave(self) -> bool:
        """Whether our modes need not stay for compiled code."""

    def note_hook(self, args: tuple[Any, ...]) -> None:
        """Note the tensor, the first of the arguments, on which a hook was registered on this thread."""

    def follows_here(self) -> bool:
        """Return whether the functions that another thread calls are recorded."""

    def followed_record(self) -> ThreadRecord | None:
        """Return the record of this thread, if the functions that it calls are recorded."""


class WindowPlace(NamedTuple):
    """A window of a thread."""

    thread: int
    window: int


class NodeMaker(NamedTuple):
    """Which thread has made a node."""

    thread_index: int
    number: int  # of the node, on that thread


class OtherThreads:
    """Tracks the threads of a recording. All numbers of threads are those that records show."""

    def __init__(self, own: ThreadRecord, on_first_node: Callable[[], None]) -> None:
        """Set up.

        Args:
            own: The record of the recorded thread.
            on_first_node: Called when another thread has made the first node.
        """
        self.num_calls = 0  # of torch functions, on other threads
        self.num_missed = 0  # of those, that could not be looked at
        self.num_engine_calls = 0
        self.has_nodes = False
        self.is_strict = False  # NOTE [Threads that are not followed]
        self._own = own
        self._records: list[OtherRecord] = [own]
        self._here: dict[int, int] = {}  # identifier of a running thread -> index of its record
        self._made: dict[int, tuple[HiddenRef, int]] = {}  # id of a tensor -> it, and index of the record of its thread
        self._taken: set[int] = set()  # indices of records of threads, of which another one took a tensor
        self._num_left = 0  # nodes of outputs of modules that were marked
        self._most = 1000  # of them, before those that are gone are dropped
        self._shown: dict[int, int] = {OWN: OWN}  # index of a record -> number of the thread
        self._indices = [OWN]  # the same, the other way round
        self._key = _Key()
        self._lock = Lock()
        self._on_first_node = on_first_node
        self._own_thread = get_ident()

    @property
    def num_not_followed(self) -> int:
        """How many calls of torch functions no listener has followed, if another thread took what they made."""
        return self.num_calls if self._taken - {OWN} else 0

    def start(self) -> None:
        """Start, on the thread that is recorded."""
        self._own_thread = get_ident()
        if self.are_running():
            self.be_strict()

    def are_running(self) -> bool:
        """Return whether there are other threads of the program now."""
        here = get_ident()
        return not all(_is_ours(frame) for thread, frame in _current_frames().items() if thread != here)

    def be_strict(self) -> None:
        """Remember what the recorded thread makes. NOTE [Threads that are not followed]."""
        if not self.is_strict:
            self.is_strict = True
            self._on_first_node()

    def index_here(self) -> int:
        """Return the index of the record of this thread, with a new one for a new thread."""
        thread = get_ident()
        if thread == self._own_thread:
            return OWN
        index = self._here.get(thread)
        if index is not None:
            record = self._records[index]
            if isinstance(record, ThreadRecord) and record.latest <= next_sequence_nr():
                return index  # else it has ended, and another thread got its identifier
        return self._add(ThreadRecord(), thread)

    def begin_thread(self) -> int:
        """Make the record of a thread that has just started, and return its index."""
        return self._add(ThreadRecord(), get_ident())

    def record_here(self) -> ThreadRecord:
        """Return the record of this thread."""
        return self.record(self.index_here())

    def found_here(self) -> ThreadRecord | None:
        """Return the record of this thread, if it has one."""
        index = OWN if get_ident() == self._own_thread else self._here.get(get_ident())
        return None if index is None else self.record(index)

    def record(self, index: int) -> ThreadRecord:
        """Return the record of a thread that runs Python."""
        record = self._records[index]
        assert isinstance(record, ThreadRecord)  # noqa: S101  # what made nodes in the engine runs no functions
        return record

    def records(self, *, all_threads: bool = True) -> list[ThreadRecord]:
        """List the records of threads that run Python, the recorded one first.

        Args:
            all_threads: Or only those of which another thread took a tensor.
        """
        return [
            record
            for index, record in enumerate(list(self._records))
            if isinstance(record, ThreadRecord) and (all_threads or index == OWN or index in self._taken)
        ]

    def _add(self, record: OtherRecord, thread: int | None = None) -> int:
        with self._lock:
            self._records.append(record)
            index = len(self._records) - 1
            if thread is not None:
                self._here[thread] = index
        return index

    def took(self, index: int, arguments: Sequence[Any]) -> None:
        """Mark the nodes of other threads among the inputs of a function that a thread is about to call."""
        with plain_tensors_only():
            for tensor in tensors_in(arguments):
                maker = self._maker_of(tensor)
                is_own = maker is None and index == OWN and not self.is_strict
                if maker == index or is_own or not tensor.requires_grad:
                    continue
                node = grad_fn_here(tensor)
                if node is None:
                    if index == OWN and maker is None:
                        self._remember(tensor, OWN)  # a leaf, which comes again
                    continue
                if maker is None:
                    maker = self._judge(node, index)
                    self._remember(tensor, maker)
                if maker != index:
                    self._taken.add(maker)
                    self._mark(node, maker)

    def made(self, index: int, result: Any) -> None:
        """Store which thread made the result of a function."""
        with plain_tensors_only():
            for tensor in tensors_in((result,)):
                if index != OWN and tensor.requires_grad:
                    self._remember(tensor, index)
                elif index == OWN:
                    self._made.pop(id(tensor), None)

    def applied(self, record: ThreadRecord, ctx: Any, number: int) -> None:
        """Mark the node of a custom Function that another thread applies: no function is seen to return its result."""
        if record is not self._records[OWN] and number < UNKNOWN_NR:
            self._write(ctx, self.index_here() * THREAD_SPAN + number)
            self._has_node()

    def made_here(self, end: int, result: Any) -> None:
        """Remember the results of a call on the recorded thread. NOTE [Threads that are not followed].

        Args:
            end: The number after the call.
            result: What it has returned.
        """
        if type(result) is torch.Tensor:  # nearly always
            found = [result] if result.requires_grad else []
        else:
            with plain_tensors_only():
                found = [tensor for tensor in tensors_in((result,)) if tensor.requires_grad]
        for tensor in found:
            self._remember(tensor, OWN)
        if found:
            self._own.listed.append(end)

    def are_own(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether arguments of a function are known to be of the recorded thread. Fast; false if in doubt."""
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = id(type(value))  # NOTE [Classes by identity]
            if kind in _NO_TENSORS or (kind in _PLAIN_TENSORS and not value.requires_grad):
                continue
            found = self._made.get(id(value))
            if found is None or found[1] != OWN or found[0]() is not value:
                return False
        return True

    def left(self, index: int, output: Any) -> None:
        """Mark what the outermost module on another thread returns: what takes it may not be seen."""
        if self._num_left < MOST_MARKED:
            with plain_tensors_only():
                for tensor in tensors_in((output,)):
                    node = grad_fn_here(tensor) if self._made_here(tensor, index) else None
                    if node is not None:
                        self._num_left += 1
                        self._mark(node, index)

    def _made_here(self, tensor: torch.Tensor, index: int) -> bool:
        """Return whether a thread made a tensor, by a torch function or by applying a custom Function."""
        if self._maker_of(tensor) is None and self.record(index).applied_numbers:
            node = grad_fn_here(tensor)
            mark = None if node is None else self._read(node)
            if mark is not None and mark // THREAD_SPAN == index:
                self._remember(tensor, index)
        return self._maker_of(tensor) == index

    def add_engine_nodes(self, record: EngineRecord, nodes: Iterable[Any], border: Iterable[tuple[Any, int]]) -> None:
        """Mark what one backward call has made.

        Args:
            record: The call.
            nodes: What it made, in an order in which a node follows those it leads to.
            border: The older nodes that these lead to, and their identities.
        """
        made = list(nodes)
        if not made:
            return
        index = self._add(record)
        for number, node in enumerate(made):
            mark = self._read(node)
            if mark is None or mark < THREAD_SPAN:  # a hook took it, when only its number was known
                self._write(node, index * THREAD_SPAN + number)
        for node, identity in border:
            if self._read(node) is None and identity < UNKNOWN_NR:
                thread, number = divmod(identity, THREAD_SPAN)
                self._write(node, self._indices[thread] * THREAD_SPAN + number)
        self._has_node()

    def note_own(self, node: Any) -> None:
        """Mark a node that the recorded thread is known to have made."""
        self._mark(node, OWN)

    def drop_tensors(self) -> None:
        """Refer to no leaf any more, which torch refuses to swap then; who made the results may still be asked."""
        with plain_tensors_only():
            for key, (reference, _) in list(self._made.items()):
                tensor = reference()
                if tensor is None or tensor.is_leaf:
                    self._made.pop(key, None)

    def _has_node(self) -> None:
        if not self.has_nodes:
            self.has_nodes = True
            self._on_first_node()

    def _remember(self, tensor: torch.Tensor, index: int) -> None:
        if len(self._made) >= self._most:
            with self._lock:
                for key, (reference, _) in list(self._made.items()):
                    if reference() is None:
                        self._made.pop(key, None)
                self._most = 2 * len(self._made) + 1000
        self._made[id(tensor)] = HiddenRef(tensor), index
        if index != OWN:
            self._has_node()

    def _maker_of(self, tensor: torch.Tensor) -> int | None:
        found = self._made.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _judge(self, node: Any, index: int) -> int:
        """Find out whether a node was made by this thread, outside of all torch functions, or by the recorded one."""
        mark = self._read(node)
        if mark is not None:
            return mark // THREAD_SPAN
        number = sequence_nr(node)
        if number >= UNKNOWN_NR:
            return OWN
        if self.is_strict and self.record(OWN).is_listed(number):
            return UNKNOWN  # it is not a result of that call
        return OWN if index == OWN else self._judge_elsewhere(node, number, index)

    def _judge_elsewhere(self, node: Any, number: int, index: int) -> int:
        here, own = self.record(index), self.record(OWN)
        if here.is_in_call(number) or not here.first <= number < next_sequence_nr():
            return OWN
        if number >= own.latest:
            return index
        if not is_python_node(node):
            return UNKNOWN
        if own.is_in_call(number):
            return index
        is_here = here.has_applied(number, type(node)) or here.call_of(number) is not None
        makers = is_here, own.has_applied(number, type(node))
        return {(True, False): index, (False, True): OWN}.get(makers, UNKNOWN)

    def _mark(self, node: Any, index: int) -> None:
        number = sequence_nr(node)
        if number < UNKNOWN_NR and self._read(node) is None:
            self._write(node, UNKNOWN if index == UNKNOWN else index * THREAD_SPAN + number)

    def _read(self, node: Any) -> int | None:
        try:
            found = node_metadata(node).get(self._key)
        except (AttributeError, RuntimeError, TypeError):
            return None
        return found if type(found) is int else None

    def _write(self, node: Any, value: int) -> None:
        try:
            node_metadata(node)[self._key] = value
        except (AttributeError, RuntimeError, TypeError):
            return

    def identities(
        self, nodes: Sequence[Any], numbers: Sequence[int], next_edges: Sequence[tuple[Edge | None, ...]]
    ) -> list[int]:
        """Find out which thread made each node of a graph. NOTE [Marks].

        Args:
            nodes: The live nodes, in topological order.
            numbers: Their sequence numbers.
            next_edges: Their edges.

        Returns:
            For each node its thread and number; UNKNOWN_NR if the thread is not known.
        """
        passed: list[set[int]] = [set() for _ in nodes]
        here = self.index_here()
        found = []
        for node, number, edges, threads in zip(nodes, numbers, next_edges, passed, strict=True):
            if number >= UNKNOWN_NR:
                found.append(number)
                continue
            mark = self._read(node)
            if mark is None:
                index, place = self._passed_on(node, number, threads or {here}), number
            else:
                index, place = divmod(mark, THREAD_SPAN)
            found.append(UNKNOWN_NR if index == UNKNOWN else self._show(index) * THREAD_SPAN + place)
            to_next = self._threads_after(index, threads)
            for edge in edges:
                if edge is not None:
                    passed[edge.next_node] |= to_next
        return found

    def _threads_after(self, index: int, threads: set[int]) -> set[int]:
        """Return which threads can have made what a node leads to, if it has no mark."""
        if index == UNKNOWN and self.is_strict:
            return {UNKNOWN}
        if index == UNKNOWN:
            return threads or {number for number, one in enumerate(self._records) if isinstance(one, ThreadRecord)}
        return {index if isinstance(self._records[index], ThreadRecord) else OWN}

    def _passed_on(self, node: Any, number: int, threads: set[int]) -> int:
        """Choose the thread of a node without a mark among those of the nodes that lead to it."""
        if UNKNOWN in threads:  # what the recorded thread has taken of others is marked
            return OWN if OWN in threads and self._can_have_made(OWN, node, number) else UNKNOWN
        possible = [index for index in threads if self._can_have_made(index, node, number)]
        return possible[0] if len(possible) == 1 else UNKNOWN

    def _can_have_made(self, index: int, node: Any, number: int) -> bool:
        record = self.record(index)
        if index == OWN and get_ident() == self._own_thread:
            record.latest = next_sequence_nr()
        if number >= record.latest:
            return False
        is_elsewhere = index == OWN and is_python_node(node) and record.is_in_call(number)
        return not (is_elsewhere and any(other.is_in_gap(number) for other in self.records()[1:]))

    def number_here(self) -> int:
        """Return the number of this thread, as records show it."""
        return self._show(self.index_here())

    def _show(self, index: int) -> int:
        number = self._shown.get(index)
        if number is None:
            number = self._shown[index] = len(self._indices)
            self._indices.append(index)
        return number

    def frame_of(self, identity: int) -> int | None:
        """Find the line that made a node of another thread."""
        thread, number = divmod(identity, THREAD_SPAN)
        if not 0 < thread < len(self._indices):
            return None
        record = self._records[self._indices[thread]]
        if isinstance(record, ThreadRecord):
            call = record.call_of(number)
            return record.frame_of(number) if call is None else call.frame
        return record.frame

    def place_of(self, identity: int) -> WindowPlace | None:
        """Find the module window in which a node was made."""
        thread, number = divmod(identity, THREAD_SPAN)
        if thread >= len(self._indices):
            return None
        index = self._indices[thread]
        record = self._records[index]
        window = NOWHERE
        call: EngineRecord | None
        if isinstance(record, ThreadRecord):
            window, call = record.window_of(number), record.call_of(number)
        else:
            call = record
        if window == NOWHERE and call is not None:
            index, window = call.thread, call.window
        return None if window == NOWHERE else WindowPlace(self._show(index), window)

    def record_of(self, thread: int) -> ThreadRecord:
        """Return the record of the thread with this number."""
        return self.record(self._indices[thread])

    def identity_of(self, node: Any) -> int:
        """Identify a live node, of this thread if it has no mark."""
        number = sequence_nr(node)
        if not self.has_nodes or number >= UNKNOWN_NR:
            return number
        maker = self._marked_maker(node, number)
        return UNKNOWN_NR if maker is None else self._show(maker.thread_index) * THREAD_SPAN + maker.number

    def maker_of(self, node: Any) -> NodeMaker | None:
        """Find which thread made a live node: this one, if the node has no mark; None if that is not known."""
        number = sequence_nr(node)
        return None if number >= UNKNOWN_NR else self._marked_maker(node, number)

    def _marked_maker(self, node: Any, number: int) -> NodeMaker | None:
        mark = self._read(node) if self.has_nodes else None
        if mark == UNKNOWN:
            return None
        if mark is None:
            return NodeMaker(self._index_of_caller(number), number)
        return NodeMaker(*divmod(mark, THREAD_SPAN))

    def maker(self, identity: int) -> NodeMaker | None:
        """Return the same for the identity of a node."""
        thread, number = divmod(identity, THREAD_SPAN)
        return NodeMaker(self._indices[thread], number) if thread < len(self._indices) else None

    def identity_on(self, index: int, number: int) -> int | None:
        """Identify the node that has a number on some thread; None if nothing that thread called has made it."""
        if index == OWN or number >= UNKNOWN_NR:
            return number
        record = self._records[index]
        is_known = isinstance(record, ThreadRecord) and (
            record.is_in_call(number) or record.call_of(number) is not None
        )
        return self._show(index) * THREAD_SPAN + number if is_known else None

    def _index_of_caller(self, number: int) -> int:
        """Return the index of the thread that made a node without a mark, which this thread has.

        A thread of the engine runs nodes of the recorded one; but a backward call that a hook or a checkpoint makes
        there runs those that were computed there for it.
        """
        record = self.found_here()
        if record is None:
            return OWN
        is_of_nested = record.num_nested > 0 and record.call_of(number) is not None
        return self.index_here() if record.mode is not None or is_of_nested else OWN

    def clocks(self) -> Mapping[int, int]:
        """Return for each other thread that has made nodes the number of its next one."""
        if not self.has_nodes:
            return _NO_CLOCKS
        found = {}
        for index, record in enumerate(list(self._records)):
            if index == OWN:
                continue
            if isinstance(record, EngineRecord):
                found[self._show(index)] = THREAD_SPAN
            elif record.latest > record.first:
                found[self._show(index)] = record.latest
        return found


def _is_ours(frame: FrameType) -> bool:
    """Return whether a thread is one of ours, by where it began."""
    while frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith(_PACKAGE)


class _Key:
    """The key of our marks in the metadata of nodes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "gradinspect"


def tensors_in(values: Iterable[Any], depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors in arguments or results, and in containers among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth < MOST_DEPTH and isinstance(value, tuple | list):
            yield from tensors_in(value, depth + 1)
        elif depth < MOST_DEPTH and isinstance(value, dict):
            yield from tensors_in(list(value.values()), depth + 1)
