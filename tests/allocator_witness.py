"""A second witness of the peak of memory: what torch's CPU allocator itself reports while a program runs as it is."""

import gc
from typing import Any


def peak_of(program: str) -> int:
    """Run a program, and return the peak of what the allocator has given out since its start."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})  # noqa: S102  # a program of ours
        gc.collect()  # what the next program would free is not its own
    return peak_in(profiler)


def peak_in(profiler: Any) -> int:
    """Return the peak of what the allocator gave out, in a profile of memory that has ended."""
    events: list[tuple[int, int]] = []
    results: Any = profiler.profiler.kineto_results
    todo = list(results.experimental_event_tree())
    while todo:
        event = todo.pop()
        if event.name == "[memory]":
            events.append((event.start_time_ns, event.extra_fields.alloc_size))
        todo.extend(event.children)
    events.sort(key=lambda event: event[0])
    current = peak = 0
    for _, size in events:
        current += size
        peak = max(peak, current)
    return peak
