"""Time one backward call: torch's profiler reports when each node, and each operator in it, started and ended.

NOTE [Which node an event belongs to]
The profiler reports classes of nodes, not nodes. So a hook before each node opens and closes a range named after its
number, and the next backward function that starts on that thread is that node. The function's own event excludes the
hook. Nothing else is measured in such a run, because it would be timed too.

NOTE [Devices run behind]
A node has ended when its kernels have. So the hook first waits for the devices of the graph, in its own range, and the
previous node lasts until that range ends. No other device is asked: a program on the CPU must not get a context on an
accelerator. One that cannot be waited for is named, since the times do not show what it does.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.autograd.profiler import profile

from gradinspect.analyses.gradients.timeline import NodeSlice, OpSlice, Timeline, devices_of_all
from gradinspect.graph import Graph
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.walk import walk_like
from gradinspect.torch_api.devices.profiler_turn import start_profiler, stop_profiler
from gradinspect.torch_api.devices.profiling import profiler_range, require_profiler_ranges
from gradinspect.torch_api.dynamo import uncompiled

_MARK = "gradinspect::node#"
_SYNC = "gradinspect::synchronize"
_EVALUATE = "autograd::engine::evaluate_function"
_BACKWARD_SCOPE = 1  # at::RecordScope::BACKWARD_FUNCTION


class NodeTimer:
    """Times the nodes of one recorded graph. Create it before the engine runs, finish after."""

    def __init__(
        self, graph: Graph, outputs: Sequence[OutputTensor], synchronize: Callable[[str], None] | None = None
    ) -> None:
        """Hook every node and start the profiler.

        Args:
            graph: The record.
            outputs: The tensors that backward starts from.
            synchronize: Waits for a device.

        Raises:
            GradInspectError: The program is already being profiled.
        """
        require_profiler_ranges()
        self._graph = graph
        self._synchronize = synchronize or _wait_for
        self._devices = dict.fromkeys(devices_of_all(graph), True)  # whether it can be waited for
        self._profiler = profile()
        start_profiler(self._profiler)
        self._walk = walk_like(graph, [output.edge[0] for output in outputs])
        self._handles = [
            type(node).register_prehook(node, partial(self._before, n)) for n, node in enumerate(self._walk.nodes)
        ]

    def finish(self) -> Timeline:
        """Remove the hooks and sort the events."""
        self._wait()
        self.close()
        results: Any = self._profiler.kineto_results
        events = [event for event in results.events() if event.device_type() == torch.autograd.DeviceType.CPU]
        return Timeline(
            graph=self._graph,
            slices=tuple(_slices(events)),
            synchronized=tuple(device for device, can_wait in self._devices.items() if can_wait),
            unsynchronized=tuple(device for device, can_wait in self._devices.items() if not can_wait),
        )

    def close(self) -> None:
        """Remove the hooks and stop the profiler."""
        stop_profiler(self._profiler)
        for handle in self._handles:
            handle.remove()
        self._walk.close()

    @uncompiled
    def _before(self, number: int, _gradients: object) -> None:
        self._wait()
        with profiler_range(f"{_MARK}{number}"):
            pass

    def _wait(self) -> None:
        if not any(self._devices.values()):
            return
        with profiler_range(_SYNC):
            for device, can_wait in self._devices.items():
                try:
                    if can_wait:
                        self._synchronize(device)
                except (RuntimeError, NotImplementedError, ValueError, AttributeError):
                    self._devices[device] = False


def _wait_for(device: str) -> None:
    torch.accelerator.synchronize(torch.device(device))


def _slices(events: Sequence[Any]) -> list[NodeSlice]:
    """Find the event of each node, and the operators inside it."""
    by_thread: dict[int, list[Any]] = {}
    for event in sorted(events, key=lambda event: (event.start_ns(), -event.duration_ns())):
        by_thread.setdefault(event.start_thread_id(), []).append(event)
    last_sync = max((_end(event) for event in events if event.name() == _SYNC), default=0)
    found: list[tuple[int, Any, int, list[Any]]] = []
    for on_thread in by_thread.values():
        starts = [event.start_ns() for event in on_thread]
        waiting: int | None = None
        for place, event in enumerate(on_thread):
            if event.name().startswith(_MARK):
                waiting = int(event.name().removeprefix(_MARK))
            elif waiting is not None and event.scope() == _BACKWARD_SCOPE:
                inside = on_thread[place + 1 : bisect_left(starts, _end(event))]
                sync = next((later for later in on_thread[place + 1 + len(inside) :] if later.name() == _SYNC), None)
                end = max(_end(event), last_sync if sync is None else _end(sync))
                found.append((waiting, event, end, [op for op in inside if _is_operator(op)]))
                waiting = None
    found.sort(key=lambda item: item[1].start_ns())
    threads = {event.start_thread_id(): None for _, event, _, _ in found}
    numbers = {thread: number for number, thread in enumerate(threads)}
    begin = found[0][1].start_ns() if found else 0
    return [
        NodeSlice(
            node=number,
            thread=numbers[event.start_thread_id()],
            start_s=(event.start_ns() - begin) / 1e9,
            seconds=(end - event.start_ns()) / 1e9,
            ops=tuple(
                OpSlice(name=op.name(), start_s=(op.start_ns() - begin) / 1e9, seconds=op.duration_ns() / 1e9)
                for op in ops
            ),
        )
        for number, event, end, ops in found
    ]


def _end(event: Any) -> int:
    end: int = event.start_ns() + event.duration_ns()
    return end


def _is_operator(event: Any) -> bool:
    return not event.name().startswith((_MARK, _SYNC, _EVALUATE)) and event.scope() != _BACKWARD_SCOPE
