"""Nodes that another thread made are told from those of the thread of our ranges: their numbers begin at 0 again."""

from threading import Thread

import torch
from torch.autograd.profiler import profile

from gradinspect.torch_api.devices.profiler_turn import start_profiler, stop_profiler
from gradinspect.torch_api.devices.profiling import profiled_events, profiler_range


def test_a_number_comes_with_the_thread_that_gave_it() -> None:
    """The node of this thread and that of the other one may have the same number."""
    made: list[torch.Tensor] = []
    leaf = torch.ones(1000, requires_grad=True)
    thread = Thread(target=lambda: made.append(leaf.exp().sum()))
    thread.start()
    thread.join()
    mine = leaf.sin().sum()
    profiler = profile(use_kineto=True, profile_memory=True)
    start_profiler(profiler)
    with profiler_range("ours#0"):
        mine.backward()
        made[0].backward()
    stop_profiler(profiler)
    ran = {event.node: event for event in profiled_events(profiler, "ours#") if event.node}

    assert ran["SinBackward0"].made_on is None
    assert ran["ExpBackward0"].made_on not in {None, ran["SinBackward0"].thread}
    assert {ran["ExpBackward0"].sequence_nr, ran["SinBackward0"].sequence_nr}.isdisjoint({None})
