"""Saved tensors of a recorded graph that were modified after saving, and the writes that modified them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from gradinspect.checks.evidence.in_place.contents import MAX_BYTES, MAX_KEPT, difference
from gradinspect.checks.evidence.in_place.regions import overlaps, region_of
from gradinspect.checks.evidence.in_place.write_access import has_out_of_place_form
from gradinspect.checks.evidence.in_place.writes import SeenWrite, WriteLog
from gradinspect.checks.facts.graphs import StaleValue, Write
from gradinspect.graph import Frame, Graph, Node, SavedValue
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.names.variables import variables_from
from gradinspect.recording.values.saved import raw_tensor
from gradinspect.recording.values.storages import layout_of, storage_key
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.saved import can_read_raw
from gradinspect.torch_api.tensors import plain_tensors_only
from gradinspect.units import format_bytes, format_count, format_tensor

FrameOf = Callable[[int | None], Frame | None]


class StaleValues(NamedTuple):
    """What was found in one graph."""

    values: Sequence[StaleValue]
    num_unknown: int  # values of which a write may have changed some elements, or may not have


class _Candidate(NamedTuple):
    value: StaleValue
    is_changed: torch.Tensor | None = None  # on its device; None: certainly


def stale_values(walked: WalkedGraph, call: EngineCall, log: WriteLog, frame_of: FrameOf) -> StaleValues:
    """Find every saved tensor that was modified. Runs no hooks.

    Args:
        walked: The graph of the call.
        call: The call, which has not started.
        log: The writes.
        frame_of: Makes the record of a frame.
    """
    graph, walk, keys = walked
    last_writes = [log.last_end(key) for key in keys]
    is_shared = [log.shared.knows(key) for key in keys]
    found: list[_Candidate | None] = []
    with plain_tensors_only():
        for number, node in enumerate(graph.nodes):
            if node.saved and _may_be_stale(node, last_writes, is_shared):
                found.extend(_stale_of(graph, number, node, walk.nodes[number], call, log, frame_of))
        known = [one for one in found if one is not None]
        return StaleValues(_changed(known), len(found) - len(known))


def unknown_notes(number: int) -> Iterator[str]:
    """Say of how many saved tensors it is not known whether they were modified."""
    if number:
        yield (
            f"Not checked: whether {format_count(number, 'saved tensor')} changed where a write past autograd selects "
            f"elements, because no more than {format_bytes(MAX_BYTES)} of a write and {format_bytes(MAX_KEPT)} of all "
            "are kept to compare."
        )


def _changed(candidates: Sequence[_Candidate]) -> list[StaleValue]:
    """Return those that have changed, which is fetched once from each device."""
    flags = defaultdict[torch.device, list[torch.Tensor]](list)
    for one in candidates:
        if one.is_changed is not None:
            flags[one.is_changed.device].append(one.is_changed)
    with unobserved():
        fetched = {device: iter(ops.tolist(ops.stack(those))) for device, those in flags.items()}
    return [one.value for one in candidates if one.is_changed is None or next(fetched[one.is_changed.device])]


def _may_be_stale(node: Node, last_writes: list[int], is_shared: list[bool]) -> bool:
    """Return whether a saved value needs a closer look: most are in memory that was not written since."""
    made = node.sequence_nr
    if made is None:
        return False
    if node.thread:  # its number says nothing about when
        return True
    for value in node.saved:
        tensor = value.tensor
        if tensor is None:
            continue
        storage = tensor.storage
        if value.status != "live" or storage is None or is_shared[storage] or last_writes[storage] > made:
            return True
    return False


def _stale_of(  # noqa: PLR0913, PLR0917  # everything about one node
    graph: Graph, number: int, node: Node, live: Any, call: EngineCall, log: WriteLog, frame_of: FrameOf
) -> Iterator[_Candidate | None]:
    """Yield what may have changed, and None for a value of which that cannot be known."""
    for value in node.saved:
        if value.status not in ("live", "modified") or value.tensor is None or node.identity is None:
            continue
        if not can_read_raw() and value.status == "modified":
            yield _Candidate(_stale_unseen(number, node, value, log, frame_of))
            continue
        tensor = raw_tensor(live, value)
        key = None if tensor is None else storage_key(tensor)
        if tensor is None or key is None or layout_of(tensor) is not torch.strided:
            continue
        seen = log.since(key, node.identity, is_custom=node.function is not None)
        expected, is_changed = value.tensor.expected_version, None
        if (
            expected is not None and value.tensor.version is not None
        ):  # one version counter for all tensors that share the memory
            seen = [one for one in seen if one.versions[0] < value.tensor.version and expected < one.versions[1]]
        else:
            region = region_of(tensor)
            seen = [one for one in seen if _began_after(one, node) and overlaps(one.region, region)]
            is_by_numpy = not seen and not node.thread and log.shared.is_changed(tensor, node.identity)
            if not (seen or is_by_numpy) or _is_unused(value, node):
                continue
            is_changed = difference(tensor, [(one.region, one.content) for one in seen]) if seen else None
            if is_changed is None and seen and not any(one.is_whole for one in seen):
                yield None
                continue
        stale = StaleValue(
            node=number,
            name=value.name,
            label=_label(graph, value, tensor, call),
            writes=tuple(_write(write, log, frame_of) for write in seen),
            version=value.tensor.version or 0,
            expected_version=expected,
            shared=None if seen else frame_of(log.shared.sharing_frame(key)),
        )
        yield _Candidate(stale, is_changed)


def _stale_unseen(number: int, node: Node, value: SavedValue, log: WriteLog, frame_of: FrameOf) -> StaleValue:
    """Report a value that torch refuses to unpack: NOTE [Where no hook can be] in `torch_api.saved`."""
    assert value.tensor is not None  # noqa: S101  # checked by the caller
    assert node.identity is not None  # noqa: S101  # as above
    version, expected = value.tensor.version or 0, value.tensor.expected_version or 0
    return StaleValue(
        node=number,
        name=value.name,
        label=f"the {format_tensor(value.tensor.info)} that it saved",
        writes=tuple(_write(write, log, frame_of) for write in log.between(node.identity, (expected, version))),
        version=version,
        expected_version=expected,
    )


def _began_after(write: SeenWrite, node: Node) -> bool:
    """Return whether a write, which ended after a node was made, began after it too."""
    return bool(node.thread) or (node.sequence_nr is not None and write.start > node.sequence_nr)


def _is_unused(value: SavedValue, node: Node) -> bool:
    """Return whether backward ignores a value: in training, batch norm does not need its running statistics."""
    if value.name not in ("_saved_running_mean", "_saved_running_var"):
        return False
    return any(other.name == "_saved_training" and other.value is True for other in node.saved)


def _write(write: SeenWrite, log: WriteLog, frame_of: FrameOf) -> Write:
    return Write(
        op=write.op,
        frame=frame_of(write.frame),
        called=None if write.frame is None else frame_of(log.caller_of(write.frame)),
        is_tracked=write.makes_node,
        has_form=has_out_of_place_form(write.op),
        optimizer=write.optimizer,
    )


def _label(graph: Graph, value: SavedValue, tensor: torch.Tensor, call: EngineCall) -> str:
    """Label a tensor by its parameter, a variable that shares its memory, or the node that made it."""
    if value.origin_name is not None:
        return value.origin_name
    storage = None if value.tensor is None or value.tensor.storage is None else graph.storages[value.tensor.storage]
    if storage is not None and storage.name is not None:
        return storage.name
    key = storage_key(tensor)
    for name, item in variables_from(call.frame):
        if isinstance(item, torch.Tensor) and storage_key(item) == key:
            return name
    shape = "a tensor" if value.tensor is None else format_tensor(value.tensor.info)
    maker = None if value.tensor is None else value.tensor.made_by
    return f"the {shape}" + ("" if maker is None else f" of {graph.nodes[maker].name}")
