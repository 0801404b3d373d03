"""The private part of torch's profiler: our own ranges among its events."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gradinspect.torch_api.probes import private

_TREE = private("torch._C._profiler._ExtraFields_Allocation", only_for="fit --real")

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
    """Check that the profiler tells of memory.

    Raises:
        GradInspectError: This torch's does not.
    """
    _TREE.required()


def has_memory_events() -> bool:
    """Return whether the profiler tells of memory."""
    return _TREE.is_there


class ProfiledEvent(NamedTuple):
    """Memory that was given out or taken back, or a range of ours, in the order in which they came."""

    time_ns: int
    name: str  # of a range of ours; "" of memory
    num_bytes: int  # negative: taken back
    address: int
    op: str  # that ran
    node: str  # that the engine ran
    sequence_nr: int | None  # of the node


def profiled_events(profiler: Any, mark: str) -> Iterator[ProfiledEvent]:
    """Yield what a profiler has seen of memory, and the ranges whose names begin with a mark."""
    kind = _TREE.required()
    todo = [(event, "", "", None) for event in profiler.kineto_results.experimental_event_tree()]
    while todo:
        event, op, node, number = todo.pop()
        fields = event.extra_fields
        name = event.name
        if isinstance(fields, kind):
            yield ProfiledEvent(event.start_time_ns, "", fields.alloc_size, fields.ptr or 0, op, node, number)
        elif name.startswith(mark):
            yield ProfiledEvent(event.start_time_ns, name, 0, 0, op, node, number)
        elif name.startswith(_EVALUATE):
            node, number = name.removeprefix(_EVALUATE), getattr(fields, "sequence_number", None)
        elif name.startswith("aten::") and (not op or node):
            op = name
        todo.extend((child, op, node, number) for child in event.children)


_EVALUATE = "autograd::engine::evaluate_function: "
