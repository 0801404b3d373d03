"""What keeps the graphs of earlier backward calls alive when the next one starts: variables, and gradients."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import EarlierCall, was_numbered_since
from gradinspect.checks.facts.graphs import KeptHistory
from gradinspect.graph import Frame
from gradinspect.observers.graphs.holders import HeldGroup, HolderSearch
from gradinspect.observers.graphs.live_graph import LiveGraph, grad_fns_of, reachable, reaching, tensors_with_graph
from gradinspect.recording.frames import short_file_name
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall


def kept_history(
    call: EngineCall, rounds: Sequence[EarlierCall], recorder: Recorder, base_folder: Path
) -> list[KeptHistory]:
    """Find what holds nodes of earlier iterations, besides the graph of this call itself.

    Only what is made again in each iteration can grow, so a line that made a held node must have run again. A window
    of the latest elements does not grow.

    Args:
        call: The call, which has not started.
        rounds: The earlier calls.
        recorder: Has the source lines.
        base_folder: Files below it are named relative to it.
    """
    history = frozenset().union(*(earlier.nodes for earlier in rounds))
    live = LiveGraph(tensors_with_graph(), recorder.others, call.outputs)
    try:
        return list(_holders(live, call, rounds, history, recorder, base_folder))
    finally:
        live.close()


def _holders(  # everything about the holders
    live: LiveGraph,
    call: EngineCall,
    rounds: Sequence[EarlierCall],
    history: frozenset[int],
    recorder: Recorder,
    base_folder: Path,
) -> Iterator[KeptHistory]:
    old = reaching(live, history.__contains__)
    own = set(reachable(grad_fns_of(call.outputs)))
    last = max(rounds, key=lambda earlier: earlier.clock)
    made = (live.number_of(node) for node in own)
    anew = {recorder.frame_of(number) for number in made if was_numbered_since(number, last)} - {None}
    roots = [tensor for tensor in live.tensors if tensor.grad_fn in old and tensor.grad_fn not in own]
    for group in HolderSearch(call.frame).groups(roots) if roots else ():
        numbers = set(map(live.number_of, reachable(tensor.grad_fn for tensor in group.tensors)))
        if group.name and not group.is_cut and any(recorder.frame_of(number) in anew for number in numbers & history):
            maker = None if group.stored_at else live.number_of(group.tensors[0].grad_fn)
            line = None if maker is None else recorder.frames.record(recorder.frame_of(maker), base_folder)
            yield replace(_held(group, numbers, rounds, base_folder), made=line)
    gradients = [gradient for gradient in live.gradients if gradient.grad_fn in old]
    if gradients:
        yield KeptHistory(held_by="gradient", num_tensors=len(gradients), num_rounds=1)


def stored_lines(group: HeldGroup, base_folder: Path) -> tuple[Frame, ...]:
    """Return the lines that store what a group consists of, those that add to it if there are any."""
    stores = [store for store in group.stored_at if store.adds] or group.stored_at
    return tuple(
        Frame(file=short_file_name(store.file, base_folder), line=store.line, code=store.code) for store in stores
    )


def _held(group: HeldGroup, numbers: set[int], rounds: Sequence[EarlierCall], base_folder: Path) -> KeptHistory:
    return KeptHistory(
        held_by="variable",
        name=group.name,
        num_tensors=len(group.tensors),
        num_rounds=sum(not numbers.isdisjoint(earlier.nodes) for earlier in rounds),
        stores=stored_lines(group, base_folder),
        adds=any(store.adds for store in group.stored_at),
    )
