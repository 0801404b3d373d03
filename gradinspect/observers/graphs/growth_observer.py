"""Count at each backward call how much of the graphs made so far is alive, and find what holds it.

NOTE [What is alive] in `live_graph` defines alive. Nodes made before the last backward call began belong to
earlier iterations, but for those of this call's own graph that no earlier call went through: the loss of a generator
may be computed before the backward of the discriminator.
"""

from collections.abc import Callable, Iterator, Mapping
from gc import collect
from typing import Any

import torch

from gradinspect.analyses.memory.growth import Growth, HeldBy, Holder, Iteration
from gradinspect.graph import THREAD_SPAN, CallKind
from gradinspect.observers.graphs.holders import HolderSearch
from gradinspect.observers.graphs.live_graph import (
    LiveGraph,
    grad_fns_of,
    next_nodes,
    reachable,
    reaching,
    tensors_with_graph,
)
from gradinspect.recording.frames import line_at, line_name
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors, storages_within
from gradinspect.runner.engine import EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR, UNKNOWN_NR, require_sequence_numbers, sequence_nr
from gradinspect.torch_api.saved import saved_contents
from gradinspect.torch_api.tensors import key_of_storage, require_storage_keys


class GrowthObserver(Observer[Growth]):
    """Counts live nodes at the first backward calls of a program."""

    def __init__(self, run: Run, asked: int) -> None:
        """Set up, before the program starts."""
        require_sequence_numbers("--iterations")
        require_storage_keys("--iterations")
        self._run = run
        self._source = run.request.label
        self._asked = asked
        self._recorder = run.recorder
        self._iterations: list[Iteration] = []
        self._holders: tuple[Holder, ...] = ()
        self._boundary = 0  # the next number of the recorded thread, when the last call began
        self._boundaries: Mapping[int, int] = {}  # those of other threads
        self._passed: set[int] = set()  # the numbers of nodes that calls went through
        self._new: set[int] = set()  # those that this call is the first to go through
        self._number_of: Callable[[Any], int] = sequence_nr
        self._kind: CallKind = "backward"
        self._saved = _SavedBytes(run.recorder)

    @property
    def is_done(self) -> bool:
        """Whether as many calls were seen as requested."""
        return len(self._iterations) >= self._asked

    def result(self) -> Growth | None:
        """Return the result; None before the first call."""
        if not self._iterations:
            return None
        return Growth(
            source=self._source,
            kind=self._kind,
            asked=self._asked,
            iterations=tuple(self._iterations),
            holders=self._holders,
        )

    def on_call(self, call: EngineCall) -> None:
        """Look at a call, and stop the program after the requested number."""
        if not self.is_done:
            with self._run.process_state.restored():
                self.observe(call)
        if self.is_done:
            self._run.stop(call.caller)

    def observe(self, call: EngineCall) -> None:
        """Count what is alive as a backward call starts. Runs the garbage collector first."""
        collect()
        self._kind = call.kind
        live = LiveGraph(tensors_with_graph(), self._recorder.others, call.outputs)
        try:
            self._number_of = live.number_of
            own = reachable(grad_fns_of(call.outputs))
            numbers = set(map(live.number_of, own))
            self._new = numbers - self._passed
            old = [node for node in live.nodes if self._is_old(node)]
            self._iterations.append(
                Iteration(
                    number=call.number,
                    place=_place(call),
                    live_nodes=len(live.nodes),
                    live_bytes=self._saved.count(live.nodes),
                    old_nodes=len(old),
                    old_bytes=self._saved.count(old),
                )
            )
            if self.is_done and old:
                self._holders = tuple(self._find_holders(live, call, own))
        finally:
            live.close()
        self._passed |= numbers
        self._boundary, self._boundaries = self._recorder.next_number(), self._recorder.others.clocks()

    def _find_holders(self, live: "LiveGraph", call: EngineCall, own: list[Any]) -> Iterator[Holder]:
        """Find what keeps old nodes alive: tensors that the program holds, the newest graph itself, gradients."""
        joined = self._joined(own)
        if joined is not None:
            yield joined
        old = reaching(live, self._is_before)
        own_nodes = set(own)
        old_roots = [tensor for tensor in live.tensors if tensor.grad_fn in old and tensor.grad_fn not in own_nodes]
        groups = HolderSearch(call.frame).groups(old_roots)
        gradients = [gradient.grad_fn for gradient in live.gradients if gradient.grad_fn in old]
        named = [tensor.grad_fn for group in groups if group.name for tensor in group.tensors]
        explained = set(reachable([*own, *gradients, *named]))  # nodes also hold tensors, those that they saved
        for group in groups:
            functions = [tensor.grad_fn for tensor in group.tensors]
            if not group.name:
                functions = [function for function in functions if function not in explained]
            if functions:
                stored_at = tuple(store.describe() for store in group.stored_at)
                yield self._holder("variable" if group.name else "nothing", functions, group.name, stored_at)
        if gradients:
            yield self._holder("gradient", gradients)

    def _holder(self, held_by: HeldBy, functions: list[Any], name: str = "", stored_at: tuple[str, ...] = ()) -> Holder:
        nodes = [node for node in reachable(functions) if self._is_old(node)]
        return Holder(
            held_by=held_by,
            name=name,
            num_tensors=len(functions),
            num_nodes=len(nodes),
            num_bytes=self._saved.count(nodes),
            stored_at=stored_at,
            made_at=self._line_of(functions[0]),
        )

    def _joined(self, own: list[Any]) -> Holder | None:
        """Find where the graph of this backward call continues into earlier iterations."""
        old = [node for node in own if self._is_old(node)]
        if not old:
            return None
        seams = [
            (node, next_node)
            for node in own
            if not self._is_old(node) and sequence_nr(node) != ACCUMULATE_GRAD_NR
            for next_node in next_nodes(node)
            if self._is_old(next_node)
        ]
        lines = dict.fromkeys(line for new, _ in seams if (line := self._line_of(new)) is not None)
        made = next((line for _, before in seams if (line := self._line_of(before)) is not None), None)
        return Holder(
            held_by="graph",
            num_tensors=len({id(before) for _, before in seams}),
            num_nodes=len(old),
            num_bytes=self._saved.count(old),
            stored_at=tuple(lines),
            made_at=made,
        )

    def _is_old(self, node: Any) -> bool:
        return self._is_before(self._number_of(node))

    def _is_before(self, identity: int) -> bool:
        """Return whether a node is of an earlier iteration."""
        if identity >= UNKNOWN_NR or identity in self._new:
            return False
        thread, number = divmod(identity, THREAD_SPAN)
        return number < (self._boundaries.get(thread, 0) if thread else self._boundary)

    def _line_of(self, node: Any) -> str | None:
        frame = self._recorder.frame_of(self._number_of(node))
        return None if frame is None else self._recorder.frames.describe(frame)


class _SavedBytes:
    """Counts the bytes of saved storages, without parameters."""

    def __init__(self, recorder: Recorder) -> None:
        self._names: dict[type, list[str]] = {}
        self._recorder = recorder

    def count(self, nodes: list[Any]) -> int:
        sizes: dict[int, int] = {}
        for node in nodes:
            for tensor in self._tensors_of(node):
                if isinstance(tensor, torch.nn.Parameter) or (tensor.is_leaf and tensor.requires_grad):
                    continue
                sizes.update((key_of_storage(storage), storage.nbytes()) for storage in storages_within(tensor))
        leaves = [getattr(node, "variable", None) for node in nodes]
        parameters = {key_of_storage(storage) for storage in storages_within(leaves)}
        return sum(size for key, size in sizes.items() if key not in parameters)

    def _tensors_of(self, node: Any) -> Iterator[torch.Tensor]:
        kind = type(node)
        if kind not in self._names:
            self._names[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        identity = self._recorder.others.identity_of(node)
        for tensor in plain_tensors(saved_contents(node, self._names[kind], identity, self._recorder.saved_hooks)):
            if tensor.layout is torch.strided:
                yield tensor


def _place(call: EngineCall) -> str:
    frame = call.frame
    return "" if frame is None else line_name(frame.f_code.co_filename, line_at(frame))
