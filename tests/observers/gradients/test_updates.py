"""Optimizer updates: measured correctly, without changing the program."""

import csv
import gc
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

import pytest
import torch
from runs import gradinspect, python
from torch import nn
from torch.optim import optimizer as hooks_of

from gradinspect.analyses.gradients.observed import parameter_rows
from gradinspect.analyses.gradients.steps import GradientSteps
from gradinspect.observers.gradients import updates
from gradinspect.observers.gradients.gradient_steps_observer import GradientCalls
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in


class Measured:
    """Gradient calls, and the frames that they stopped at."""

    def __init__(self, steps: int = 1) -> None:
        """Start."""
        self.stops: list[FrameType] = []
        self.calls = GradientCalls(steps, self.stops.append)

    def backward(self, loss: torch.Tensor) -> None:
        """Run backward as a session would."""
        self.calls.settle()
        outputs = outputs_in(loss)
        run = self.calls.begin(record_graph(outputs, Moment(source="test")), outputs, sys._getframe())
        loss.backward()
        run.finish(None)

    def settled(self) -> GradientSteps:
        """Return what was seen, now that the program has ended."""
        self.calls.settle()
        result = self.calls.result()
        assert result is not None
        return result

    def update_norms(self) -> list[float | None]:
        """Return the updates of the leaves."""
        result = self.settled().graph
        return [row.update_norm for row in parameter_rows(result)]


def model() -> nn.Linear:
    """Make two leaves."""
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def loss_of(layer: nn.Module) -> torch.Tensor:
    """Make a loss."""
    loss: torch.Tensor = layer(torch.ones(4, 3)).square().sum()
    return loss


OPTIMIZERS: list[Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.Adam(parameters, lr=0.1, foreach=True),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.1, fused=True),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_an_update_is_the_weight_after_minus_the_weight_before(
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
) -> None:
    """As the script itself would take it; the ratio is to the weight before the step."""
    layer, measured = model(), Measured()
    optimizer = make(list(layer.parameters()))
    measured.backward(loss_of(layer))
    assert measured.stops == []
    before = {name: parameter.detach().clone() for name, parameter in layer.named_parameters()}
    optimizer.step()
    norms = {name: float((parameter.detach() - before[name]).norm()) for name, parameter in layer.named_parameters()}
    result = measured.settled().graph
    rows = parameter_rows(result)

    assert len(measured.stops) == 1
    assert [row.update_norm for row in rows] == pytest.approx([norms["bias"], norms["weight"]])
    assert [row.update_ratio for row in rows] == pytest.approx([
        norms[name] / float(before[name].norm())
        for name in ("bias", "weight")
    ])  # fmt: skip


def test_nothing_is_kept() -> None:
    """No hook and no tensor stays, whether or not the optimizer stepped."""
    layer = model()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for steps in (True, False):
        gc.collect()
        before = sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())
        measured = Measured()
        measured.backward(loss_of(layer))
        if steps:
            optimizer.step()
        measured.calls.settle()
        optimizer.zero_grad()
        gc.collect()

        assert not hooks_of._global_optimizer_pre_hooks
        assert not hooks_of._global_optimizer_post_hooks
        assert sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects()) == before


def test_without_an_optimizer_of_these_leaves_it_stops_at_once() -> None:
    """There is nothing to wait for."""
    layer, other = model(), model()
    unrelated = torch.optim.SGD(other.parameters(), lr=0.1)
    measured = Measured()
    measured.backward(loss_of(layer))

    assert len(measured.stops) == 1
    assert measured.update_norms() == [None, None]
    assert unrelated.param_groups


def test_all_optimizers_of_the_leaves_are_waited_for() -> None:
    """One for the weight, one for the bias; a third that holds none of them is not."""
    layer = model()
    first, second = torch.optim.SGD([layer.weight], lr=0.1), torch.optim.SGD([layer.bias], lr=0.1)
    measured = Measured()
    measured.backward(loss_of(layer))
    first.step()
    assert measured.stops == []
    second.step()

    assert len(measured.stops) == 1
    assert None not in measured.update_norms()


def test_an_optimizer_inside_another_one_counts_once() -> None:
    """The outer one's whole step is the update."""

    class Twice(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure: None = None) -> None:
            self.inner.step()
            self.inner.step()

    layer, measured = model(), Measured()
    optimizer = Twice(torch.optim.SGD(layer.parameters(), lr=0.1))
    measured.backward(loss_of(layer))
    assert layer.weight.grad is not None
    expected = 0.2 * float(layer.weight.grad.norm())
    optimizer.step()

    assert measured.update_norms()[1] == pytest.approx(expected)


def test_optimizers_of_two_threads_step_at_once() -> None:
    """One ends while the other one is in the middle of its step, and each has its own update."""

    class Long(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            begun.set()
            assert ended.wait(60)
            super().step(closure)

    class Short(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            thread.start()
            assert begun.wait(60)
            super().step(closure)

    begun, ended = Event(), Event()
    layer, measured = model(), Measured()
    short, long = Short([layer.weight], lr=0.1), Long([layer.bias], lr=0.3)
    thread = Thread(target=long.step)
    measured.backward(loss_of(layer))
    assert layer.weight.grad is not None
    assert layer.bias.grad is not None
    expected = [0.3 * float(layer.bias.grad.norm()), 0.1 * float(layer.weight.grad.norm())]
    short.step()
    ended.set()
    thread.join()

    assert measured.update_norms() == pytest.approx(expected)


def test_a_step_of_another_thread_may_end_after_the_measurement() -> None:
    """It has nothing to measure, and no error reaches it."""

    class Late(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            begun.set()
            assert closed.wait(60)
            super().step(closure)

    begun, closed = Event(), Event()
    layer, measured = model(), Measured()
    late = Late(layer.parameters(), lr=0.1)
    measured.backward(loss_of(layer))
    thread = Thread(target=late.step)
    thread.start()
    assert begun.wait(60)
    result = measured.settled()
    closed.set()
    thread.join()

    assert [row.update_norm for row in parameter_rows(result.graph)] == [None, None]


def test_an_optimizer_that_steps_inside_backward() -> None:
    """One for each parameter, as a hook behind the accumulation."""
    layer = model()
    before = layer.weight.detach().clone()
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1) for parameter in layer.parameters()}
    for parameter in layer.parameters():
        parameter.register_post_accumulate_grad_hook(lambda leaf: optimizers[leaf].step())
    measured = Measured()
    measured.backward(loss_of(layer))
    result = measured.settled().graph
    row = parameter_rows(result)[1]

    assert len(measured.stops) == 1
    assert row.update_norm == pytest.approx(float((layer.weight.detach() - before).norm()))
    assert row.weight_norm == pytest.approx(float(before.norm()))


def test_a_closure_has_no_update() -> None:
    """The step began before its gradients were measured; nothing breaks, and the next call ends the wait."""
    layer = model()
    optimizer = torch.optim.LBFGS(layer.parameters(), lr=0.1, max_iter=2)
    measured = Measured(3)

    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(layer)
        measured.calls.settle()
        if measured.calls.is_done:
            loss.backward()
        else:
            measured.backward(loss)
        return float(loss.detach())

    optimizer.step(closure)
    optimizer.step(closure)
    result = measured.settled()

    assert len(result.steps) == 3
    assert result.steps[0].parameters[0].update_norm is None


def test_a_failed_backward_leaves_nothing() -> None:
    """The program goes on by itself."""
    layer, measured = model(), Measured()
    outputs = outputs_in(loss := loss_of(layer))
    loss.backward()
    measured.calls.begin(record_graph(outputs, Moment(source="test")), outputs, sys._getframe())
    with pytest.raises(RuntimeError):
        loss.backward()

    measured.calls.settle()
    assert measured.calls.result() is None
    assert not hooks_of._global_optimizer_pre_hooks


TRAIN = (
    "import torch\ntorch.manual_seed(0)\nm = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), "
    "torch.nn.Linear(8, 1))\no = torch.optim.Adam(m.parameters())\n"
    "for _ in range(5):\n    loss = m(torch.randn(8, 4)).square().mean()\n    o.zero_grad()\n    loss.backward()\n"
    "    print([p.grad.norm().item() for p in m.parameters()])\n"
    "    o.step()\nprint([p.detach().sum().item().hex() for p in m.parameters()])\n"
)


def test_norms_of_every_call_and_bit_equal_weights(tmp_path: Path) -> None:
    """The norms are those that the script prints of its `.grad`; what it prints is what it prints under python."""
    (tmp_path / "train.py").write_text(TRAIN)
    plain = python(tmp_path / "train.py")
    arguments = ("grads", "train.py", "--backward", "2", "--steps", "3", "--continue", "--format", "json")
    done = gradinspect(*arguments, cwd=tmp_path)
    printed, brace, rest = done.stdout.partition("{")
    found = json.loads(brace + rest)
    norms = [{row["name"]: row["stats"]["norm"] for row in step["parameters"]} for step in found["steps"]]
    expected = [json.loads(line) for line in plain.stdout.splitlines()[1:4]]

    assert printed == plain.stdout
    assert [step["number"] for step in found["steps"]] == [2, 3, 4]
    for actual, norm in zip(norms, expected, strict=True):
        assert [actual[name] for name in ("0.weight", "0.bias", "2.weight", "2.bias")] == pytest.approx(norm)
    assert all(row["update_ratio"] > 0 for step in found["steps"] for row in step["parameters"])


def test_the_script_stops_after_the_step(tmp_path: Path) -> None:
    """Not before, so that the update is seen, and not later; a shorter program is reported as such."""
    (tmp_path / "train.py").write_text(TRAIN)
    one = gradinspect("grads", "train.py", cwd=tmp_path)
    more = gradinspect("grads", "train.py", "--steps", "9", "--quiet-script", cwd=tmp_path)
    table = gradinspect("grads", "train.py", "--steps", "2", "--format", "csv", "--quiet-script", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO(table.stdout)))

    assert one.stdout.count("[") == 1
    assert "update/weight" in one.stdout
    assert "5 backward calls observed, 9 requested: the program made no more, loss" in more.stdout
    assert [row["call"] for row in rows] == ["1"] * 4 + ["2"] * 4
    assert {one.returncode, more.returncode, table.returncode} == {0}


def test_steps_of_a_capture_file_is_one_sentence(tmp_path: Path) -> None:
    """It is of one moment."""
    (tmp_path / "train.py").write_text(TRAIN)
    gradinspect("export", "train.py", "--gradients", "-o", "run.json", "--quiet-script", cwd=tmp_path)
    done = gradinspect("grads", "run.json", "--steps", "3", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "gradinspect: 'run.json' is a capture of one moment: it can't show 3 steps. Give a program to run.\n"
    )


def test_a_call_of_another_thread_meanwhile_is_not_measured(tmp_path: Path) -> None:
    """It neither ends the measurement that is running nor starts one."""
    (tmp_path / "threads.py").write_text(
        "import threading, torch\n"
        "inside, done = threading.Event(), threading.Event()\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "v = torch.ones(2, requires_grad=True)\n"
        "def wait(_grad):\n    inside.set()\n    done.wait(20)\n"
        "def other():\n    inside.wait(20)\n    (v * v).sum().backward()\n    done.set()\n"
        "thread = threading.Thread(target=other)\n"
        "thread.start()\n"
        "loss = (w * w).sum()\n"
        "loss.register_hook(wait)\n"
        "loss.backward()\n"
        "thread.join()\n"
    )
    done = gradinspect("grads", "threads.py", "--continue", cwd=tmp_path)

    missed = "note: 1 backward call in another thread was not looked at.\n"
    assert (done.returncode, done.stderr) == (0, missed)
    assert "3 of 3 nodes ran, loss 3" in done.stdout


@pytest.mark.parametrize("free", [0, 10, None])
def test_weights_that_do_not_fit_the_host_are_not_copied(free: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step goes on, and the report says why there are no updates; what the system does not say is no limit."""
    monkeypatch.setattr(updates, "_free_bytes", lambda: free)
    layer, measured = model(), Measured()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    measured.backward(loss_of(layer))
    optimizer.step()
    found = measured.settled().graph.gradients
    why = f"The update of 2 weights was not measured: a copy needs 32 B of the {free} B of memory that are free."

    assert found is not None
    assert found.notes == (() if free is None else (why,))
    assert len(found.update_norms) == (2 if free is None else 0)
