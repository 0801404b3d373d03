"""The library in several threads at the same time, each with a model of its own or all with one."""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.profiler import profile

import gradinspect as gi
from gradinspect.recording.transparency.collector import collector_paused
from gradinspect.torch_api.hooks import optimizer_steps

NUM_THREADS = 4


def reraised(error: Exception) -> None:
    """Let an error of a listener fail the test."""
    raise error


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Let Python change threads as often as it can, and look at what is left."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)

    assert gc.isenabled()
    assert torch.autograd._engine_run_backward.__module__ == "torch.autograd.graph"


def step_of(size: int = 4) -> Callable[[], None]:
    """Make a training step with a model of its own."""
    model = nn.Sequential(nn.Linear(size, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(3, size)).pow(2).mean().backward()
        optimizer.step()

    return step


def in_pool(work: Callable[[int], Any]) -> list[Any]:
    """Do some work in all threads."""
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        return list(pool.map(work, range(NUM_THREADS)))


@contextmanager
def repeated_by_others(*steps: Callable[[], None]) -> Iterator[None]:
    """Let a thread for each of some steps run it again and again, and see that none fails."""
    has_ended = threading.Event()
    errors: list[BaseException] = []

    def run(step: Callable[[], None]) -> None:
        try:
            while not has_ended.is_set():
                step()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()

    assert not errors


@pytest.mark.slow
def test_steps_are_checked_in_several_threads() -> None:
    """Each finds what is wrong with its own step, and no more."""

    def work(number: int) -> list[str]:
        step = step_of()
        if number % 2:
            step = _without_zero_grad()
        found = gi.check(step, steps=3)
        assert found.is_complete, found.notes
        return [one.code for one in found.findings]

    assert in_pool(work) == [[], ["GI362"]] * 2


def _without_zero_grad() -> Callable[[], None]:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        model(torch.ones(3, 4)).pow(2).mean().backward()
        optimizer.step()

    return step


@pytest.mark.slow
def test_steps_are_measured_in_several_threads_one_after_the_other() -> None:
    """There is one profiler; a peak is that of the step alone, and of what other threads allocate meanwhile."""
    alone = gi.fit(step_of()).peak_bytes

    peaks = in_pool(lambda _: gi.fit(step_of()).peak_bytes)

    assert len(peaks) == NUM_THREADS
    assert min(peaks) == alone
    assert max(peaks) < 2 * alone


def test_graphs_are_recorded_in_several_threads() -> None:
    """Each recording has the calls of its own thread."""

    def work(number: int) -> list[int]:
        layers = [nn.Linear(4, 4) for _ in range(number + 1)]
        model = nn.Sequential(*layers)
        with gi.record(model) as recording:
            for _ in range(3):
                model(torch.ones(1, 4)).sum().backward()
        return [len(graph.nodes) for graph in recording.graphs]

    def sizes(number: int) -> list[int]:
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(number + 1)))
        return [len(gi.capture(model(torch.ones(1, 4)).sum()).nodes)] * 3

    assert in_pool(work) == [sizes(number) for number in range(NUM_THREADS)]


def test_calls_of_other_threads_are_counted_and_not_looked_at() -> None:
    """The report says so, and is not complete."""
    other = step_of()

    def step() -> None:
        own()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    own = step_of()
    found = gi.check(step, steps=2)

    assert found.num_calls == 2
    assert not found.is_complete
    assert "2 backward calls in several threads were not looked at." in found.notes


@pytest.mark.slow
def test_one_model_is_trained_by_several_threads_beside_a_check() -> None:
    """Their calls run the hooks of shared leaves; nothing of theirs is taken for the step's own."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def step() -> None:
        model(torch.ones(3, 4)).pow(2).mean().backward()

    with repeated_by_others(step, step):
        found = gi.check(step, steps=3)

    assert found.num_calls == 3


def test_a_profiler_of_the_program_in_another_thread_is_refused_in_one_sentence() -> None:
    """Ours would end it."""
    is_running, has_ended = threading.Event(), threading.Event()

    def profiling() -> None:
        with profile():
            is_running.set()
            has_ended.wait(30)

    thread = threading.Thread(target=profiling)
    thread.start()
    is_running.wait(30)
    try:
        with pytest.raises(gi.GradInspectError, match="Another thread of the program runs torch's profiler"):
            gi.fit(step_of())
    finally:
        has_ended.set()
        thread.join()


def test_hooks_of_optimizers_are_left_while_other_threads_step() -> None:
    """Torch raises in the program if its dict of hooks changes while a thread goes through it."""
    with repeated_by_others(step_of(), step_of()):
        listening: list[ExitStack] = []
        for _ in range(200):
            listening.append(ExitStack())
            steps = optimizer_steps(before=lambda *_: None, after=lambda *_: None, note=reraised)
            listening[-1].enter_context(steps)
            if len(listening) > 3:
                listening.pop(0).close()
        for stack in listening:
            stack.close()


def test_what_other_threads_compute_is_said_not_to_be_followed() -> None:
    """Check knows the graph that they made, but not which values went where."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        with ThreadPoolExecutor(1) as pool:
            out = pool.submit(lambda: model(torch.ones(3, 4)).exp()).result()
        out.mean().backward()
        optimizer.step()

    alone, beside = gi.check(step_of()), gi.check(step)

    assert not any("not followed" in note for note in alone.notes)
    assert any("of torch functions in other threads" in note for note in beside.notes)
    assert not beside.is_complete


def test_a_recording_that_ends_inside_a_module_of_another_thread_leaves_it() -> None:
    """Its mode on that thread is gone when the next backward call there has returned."""
    ended = threading.Event()

    class Waiting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            entered.set()
            assert ended.wait(30)
            return x * 1

    def recording() -> None:
        with gi.record():
            ready.set()
            assert entered.wait(30)
        ended.set()

    entered, ready = threading.Event(), threading.Event()
    model = nn.Sequential(nn.Linear(2, 1), Waiting())
    thread = threading.Thread(target=recording)
    thread.start()
    assert ready.wait(30)
    out = model(torch.ones(1, 2)).sum()
    thread.join()
    out.backward()

    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_fork_waits_for_our_code_on_other_threads() -> None:
    """The child has the program's garbage collector, and no lock that a thread holds which it does not have."""
    inside, has_forked = threading.Event(), threading.Event()

    def recording() -> None:
        with gi.record() as recorded, collector_paused(), recorded._session.run.recorder.turn:
            inside.set()
            has_forked.wait(0.3)

    with ThreadPoolExecutor(1) as pool:
        recorded = pool.submit(recording)
        assert inside.wait(30)
        child = os.fork()
        if not child:
            step_of()()  # makes modules and an optimizer, which our hooks are told of
            os._exit(0 if gc.isenabled() else 1)
        has_forked.set()
        recorded.result()
    end = time.monotonic() + 300
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)

    assert ended == (child, 0)


class SlowSteps(torch.optim.SGD):
    """Steps until it is told to end."""

    def __init__(self, begun: threading.Semaphore, may_end: threading.Event) -> None:
        """Hold a parameter that nothing gives a gradient."""
        super().__init__([nn.Parameter(torch.ones(2))], lr=0.1)
        self.begun, self.may_end = begun, may_end

    def step(self, _closure: object = None) -> None:
        """Wait."""
        self.begun.release()
        self.may_end.wait()


def test_steps_of_other_threads_do_not_count() -> None:
    """Neither as parts of the steps whose memory is measured, nor as those of an optimizer that nothing reaches."""
    begun, may_end, others = threading.Semaphore(0), threading.Event(), list[threading.Thread]()
    inner, num_calls = step_of(), 0
    alone = gi.fit(inner).peak_bytes
    optimizers = [SlowSteps(begun, may_end) for _ in range(2)]

    def step() -> None:
        nonlocal num_calls
        num_calls += 1
        if num_calls == 2:  # the first one that is measured
            for optimizer in optimizers:
                others.append(threading.Thread(target=optimizer.step))
                others[-1].start()
                begun.acquire()
        inner()

    try:
        assert gi.fit(step).peak_bytes == alone
    finally:
        may_end.set()
    for thread in others:
        thread.join()


@pytest.mark.slow
def test_an_optimizer_of_another_thread_is_not_judged() -> None:
    """It may be one that learns nothing; the step that is checked has its own."""
    inner, may_end, has_stepped = step_of(), threading.Event(), threading.Event()

    def other() -> None:
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
        while not may_end.is_set():
            optimizer.step()
            has_stepped.set()

    def step() -> None:
        has_stepped.clear()
        inner()
        has_stepped.wait(1.0)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        found = gi.check(step)
    finally:
        may_end.set()
        thread.join()
    assert [one.code for one in found] == []
