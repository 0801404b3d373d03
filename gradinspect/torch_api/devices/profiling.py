"""The private part of torch's profiler: our own ranges among its events."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradinspect.torch_api.probes import private

_TREE = private("torch._C._profiler._ExtraFields_Allocation", only_for="fit --real")

_MEMORY = "[memory]"
OWN_WORK = "gradinspect::own"

_RANGE = private("torch._C._profiler._RecordFunctionFast", only_for="--timeline")


def profiler_range(name: str) -> Any:
    """Open a named range in the running profiler. Use it as a context manager."""
    return _RANGE.required()(name)


def require_profiler_ranges() -> None:
    """Check that nodes can be timed.

    Raises:
        GradInspectError: This torch has no such ranges.
    """
    _RANGE.required()


def require_memory_events() -> None:
    """Check that the profiler reports memory.

    Raises:
        GradInspectError: This torch's does not.
    """
    _TREE.required()


def has_memory_events() -> bool:
    """Return whether the profiler reports memory."""
    return _TREE.is_there


class ProfiledEvent(NamedTuple):
    """Memory that was allocated or freed, or a range of ours, in the order in which they came."""

    time_ns: int
    name: str  # of a range of ours; "" of memory
    num_bytes: int  # negative: freed
    address: int | None  # None: not known. NOTE [Memory of devices outside operators]
    op: str  # that ran
    node: str  # that the engine ran
    sequence_nr: int | None  # of the node
    thread: int = 0  # the profiler's number of it
    device: str = "cpu"  # whose memory it is
    allocated: int = 0  # on the device, this included; 0: not known
    reserved: int = 0  # what it has reserved
    made_on: int | None = None  # the thread that made the node, if it is not that of the first range
    is_own: bool = False  # allocated by us, not by the program


def device_label(device: Any) -> str:
    """Write a device, the CPU without a number: its memory is one."""
    return "cpu" if device.type == "cpu" else str(device)


def profiled_events(profiler: Any, mark: str) -> Iterator[ProfiledEvent]:
    """Yield what a profiler has seen of memory, and the ranges whose names begin with a mark.

    NOTE [Memory of devices outside operators]
    The tree of events leaves out what is allocated or freed on an accelerator while no operator and no range is open on
    that thread. The list of all events has it, but without its address. So a range should be open on threads of the
    program. Source: torch/csrc/autograd/profiler_kineto.cpp, torch 2.13.
    """
    seen: Counter[tuple[int, int]] = Counter()  # time and bytes of the events of accelerators
    for event in _events_of_tree(profiler, mark):
        yield event
        if event.device != "cpu":
            seen[event.time_ns, event.num_bytes] += 1
    if seen:
        yield from _events_without_address(profiler, seen)


def _events_without_address(profiler: Any, seen: Counter[tuple[int, int]]) -> Iterator[ProfiledEvent]:
    for event in profiler.kineto_results.events():
        if event.name() != _MEMORY:
            continue
        device, key = event.device_type().name.lower(), (event.start_ns(), event.nbytes())
        if device == "cpu":
            continue
        if seen[key]:
            seen[key] -= 1
            continue
        thread = event.start_thread_id()
        yield ProfiledEvent(key[0], "", key[1], None, "", "", None, thread, f"{device}:{event.device_index()}")


def _events_of_tree(profiler: Any, mark: str) -> Iterator[ProfiledEvent]:
    kind = _TREE.required()
    devices: dict[Any, str] = {}
    roots = profiler.kineto_results.experimental_event_tree()
    foreign = _nodes_of_others(profiler, roots, mark)
    todo: list[tuple[Any, str, str, int | None, int | None, bool]] = [
        (event, "", "", None, None, False) for event in roots
    ]
    while todo:
        event, op, node, number, made_on, is_own = todo.pop()
        fields = event.extra_fields
        name = event.name
        if isinstance(fields, kind):
            yield ProfiledEvent(
                event.start_time_ns, "", fields.alloc_size, fields.ptr or 0, op, node, number, event.start_tid,
                _name_of(fields.device, devices), max(fields.total_allocated, 0), max(fields.total_reserved, 0),
                made_on, is_own,
            )  # fmt: skip
        elif name.startswith(mark):
            yield ProfiledEvent(event.start_time_ns, name, 0, 0, op, node, number, event.start_tid)
        elif name.startswith(_EVALUATE):
            node, number = name.removeprefix(_EVALUATE), getattr(fields, "sequence_number", None)
            made_on = foreign.get((event.start_time_ns, event.start_tid))
        elif name.startswith("aten::") and (not op or node):
            op = name
        is_own = is_own or name == OWN_WORK
        todo.extend((child, op, node, number, made_on, is_own) for child in event.children)


def _nodes_of_others(profiler: Any, roots: Any, mark: str) -> dict[tuple[int, int], int]:
    """Return who made the nodes that another thread than that of the ranges made, by when and where they ran.

    A thread of a device makes nodes when backward itself is recorded; any thread may run a forward.
    """
    own = next((event.start_tid for event in roots if event.name.startswith(mark)), None)
    if own is None:
        return {}
    return {
        (event.start_ns(), event.start_thread_id()): event.fwd_thread_id()
        for event in profiler.kineto_results.events()
        if event.name().startswith(_EVALUATE) and event.fwd_thread_id() != own
    }


def _name_of(device: Any, devices: dict[Any, str]) -> str:
    """Write a device, each once: there are as many events as allocations."""
    name = devices.get(device)
    if name is None:
        name = devices[device] = device_label(device)
    return name


_EVALUATE = "autograd::engine::evaluate_function: "
