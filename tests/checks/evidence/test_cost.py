"""What `check` costs: calls of our own functions for each operator and each node, which are the same on any machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
import torch

import gradinspect
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.observers.gradients import gradient_meter
from gradinspect.observers.gradients.gradient_meter import GradientMeter
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder

OURS = str(Path(gradinspect.__file__).parent)
FEW, MANY = 20, 120  # steps of three operators each


@contextmanager
def counted(calls: list[str]) -> Iterator[None]:
    """Store the name of each of our functions that is called."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def recurrence(num_steps: int, weight: torch.Tensor) -> torch.Tensor:
    """Compute a loss by many small operators."""
    hidden, x = torch.zeros(1, 8), torch.ones(1, 8)
    for _ in range(num_steps):
        hidden = torch.tanh(hidden * weight + x)
    return hidden.sum()


def calls_per_operator(run: Callable[[int], list[str]]) -> float:
    """Return how many calls one more operator costs."""
    return (len(run(MANY)) - len(run(FEW))) / (3 * (MANY - FEW))


def test_an_operator_costs_few_calls_while_the_program_runs() -> None:
    """Most of the cost of watching small operators is the number of Python functions that look at each."""

    def run(num_steps: int) -> list[str]:
        calls: list[str] = []
        with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log, counted(calls):
            log.states.left = {False: 0, True: 0}  # the values of the first results are looked at as well
            recurrence(num_steps, torch.ones(1, 8, requires_grad=True))
        return calls

    # Another thread, as parallel tests have one, makes us remember all results: NOTE [Threads that are not followed]
    num_threads, cost = 0, 0.0
    while num_threads != len(sys._current_frames()):  # one of an earlier test has ended meanwhile
        num_threads, cost = len(sys._current_frames()), calls_per_operator(run)
    assert cost <= (14.5 if num_threads == 1 else 21.5)  # a third of a call for each log that looks at all of tanh


def test_a_node_costs_few_calls_while_backward_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One function of ours runs at two of three nodes, and measures everything at once."""
    monkeypatch.setattr(gradient_meter, "hooks_were_made", lambda: False)  # other tests may have made some

    def run(num_steps: int) -> list[str]:
        calls: list[str] = []
        outputs = outputs_in(recurrence(num_steps, torch.ones(1, 8, requires_grad=True)))
        meter = GradientMeter(record_graph(outputs, Moment(source="test")), outputs, times=False)
        with counted(calls):
            torch.autograd.backward([output.value for output in outputs])
        meter.finish()
        return calls

    assert calls_per_operator(run) <= 3.7
