"""What is said of tensors without a gradient, in small programs that run in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cut_steps import Step, sgd, texts, watched
from torch import nn

from gradinspect.checks.evidence.values.cuts import GradientCuts
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.recording.recorder import Recorder

X = torch.ones(3, 2)


def detached() -> Step:
    """Cut a model in two."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        hidden = first(X).detach()
        loss = last(hidden).square().mean()
        loss.backward()
        optimizer.step()

    return step


def of_another_loss() -> Step:
    """Detach for one loss what another goes through."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(last)

    def step() -> None:
        optimizer.zero_grad()
        hidden = first(X)
        loss = last(hidden.detach()).square().mean()
        loss.backward()
        optimizer.step()

    return step


def unused() -> Step:
    """Compute what no loss uses."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        extra = first(X).tanh()
        loss = last(X).square().mean()
        loss.backward()
        optimizer.step()
        assert extra.shape

    return step


def unread() -> Step:
    """Hold what nothing reads."""
    model = nn.ModuleDict({"one": nn.Linear(2, 1), "other": nn.Linear(2, 1)})
    extra = nn.Parameter(torch.ones(2))
    optimizer = sgd(model, extra)

    def step() -> None:
        optimizer.zero_grad()
        loss = model["one"](X).square().mean()
        loss.backward()
        optimizer.step()

    return step


def of_two_losses() -> Step:
    """Step after each of two losses, which reach one model each."""
    one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = sgd(one, other)

    def step() -> None:
        for model in (one, other):
            optimizer.zero_grad()
            loss = model(X).square().mean()
            loss.backward()
            optimizer.step()

    return step


def wanted() -> Step:
    """Ask for the gradient of a tensor that is not reached."""
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    def step() -> Any:
        loss = (w * 2).sum()
        return torch.autograd.grad(loss, [w, v])

    return step


def allowed() -> Step:
    """Ask for it, and accept that there is none."""
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    def step() -> Any:
        loss = (w * 2).sum()
        return torch.autograd.grad(loss, [w, v], allow_unused=True)

    return step


def of_results() -> Step:
    """Ask for the gradient of a result that is on the way."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle = w * 2
        return torch.autograd.grad(middle.exp().sum(), [middle, w])

    return step


def missed_result() -> Step:
    """Ask for the gradient of a result that the loss does not use."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle = w * 2
        return torch.autograd.grad(w.exp().sum(), [middle])

    return step


def read_leaf() -> Step:
    """Read a gradient that is not there."""
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    def step() -> Any:
        (w * 2).sum().backward()
        return v.grad

    return step


def read_and_compared() -> Step:
    """Read it to see whether it is there."""
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    def step() -> Any:
        (w * 2).sum().backward()
        return 0 if v.grad is None else 1

    return step


def read_result() -> Step:
    """Read the gradient of a result."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle = w * 2
        middle.sum().backward()
        return middle.grad

    return step


def retained() -> Step:
    """Read one that is retained, before it is there."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle = w * 2
        middle.retain_grad()
        (w * 3).sum().backward()
        return middle.grad

    return step


def constant_term() -> Step:
    """Add a term without a graph."""
    first, last = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        y = last(X) + first(X)
        penalty = first.weight.square().mean().detach()
        loss = y.square().mean() + 0.1 * penalty
        loss.backward()
        optimizer.step()

    return step


def in_closure() -> Step:
    """Compute the loss in a closure."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS([*first.parameters(), *last.parameters()], max_iter=2)

    def step() -> None:
        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = last(first(X).detach()).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)

    return step


def lost_term() -> Step:
    """Use a gradient without its graph as a penalty."""
    model = nn.Linear(2, 1)
    optimizer = sgd(model)

    def step() -> None:
        optimizer.zero_grad()
        x = X.clone().requires_grad_()
        loss = model(x).square().mean()
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        total = loss + gradient.square().sum()
        total.backward()
        optimizer.step()

    return step


def of_both_losses() -> Step:
    """Detach for one of two losses, neither of which trains what was detached."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        hidden = first(X).detach()
        last(hidden).square().mean().backward()
        last(X).square().mean().backward()
        optimizer.step()

    return step


def rounded() -> Step:
    """Round to integers, for one of two losses."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        hidden = first(X).long().float()
        last(hidden).square().mean().backward()
        last(X).square().mean().backward()
        optimizer.step()

    return step


PROGRAMS: list[tuple[Callable[[], Step], list[str]]] = [
    (detached, ["GI301 read=2 detached=2 used=3 backward=4 step=5 first.weight first.bias"]),
    (of_another_loss, []),
    (unused, ["GI303 read=2 last=2 backward=4 step=5 first.weight first.bias"]),
    (unread, ["GI304 backward=3 step=4 an unnamed tensor [2]"]),
    (of_two_losses, []),
    (wanted, ["GI304 backward=2 v"]),
    (allowed, []),
    (of_results, []),
    (missed_result, ["GI304 backward=2 middle"]),
    (read_leaf, ["GI304 backward=1 wanted=2 v"]),
    (read_and_compared, []),
    (read_result, ["GI305 made=1 backward=2 read=3 middle"]),
    (retained, []),
    (constant_term, ["GI306 detached=3 used=4 backward=5"]),
    (in_closure, ["GI301 read=3 detached=3 backward=4 step=7 first.weight first.bias"]),
    (lost_term, ["GI402 gradient=4 used=5 backward=6"]),
]


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize(("make", "expected"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_found_in_a_step(make: Callable[[], Step], expected: list[str]) -> None:
    """With the lines, counted from that of the step, and the tensors."""
    assert texts(make, watched(make)[0]) == expected


def test_a_step_before_any_backward_proves_nothing() -> None:
    """Nor does one of tensors that are not to learn, or after what was observed."""
    model, extra = nn.Linear(2, 1), nn.Linear(2, 1)
    first, last = sgd(extra), sgd(model)
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    other = sgd(frozen)

    def make() -> Step:
        def step() -> None:
            if extra.weight.requires_grad:
                first.step()
            extra.requires_grad_(False)
            last.zero_grad()
            model(X).square().mean().backward()
            last.step()
            other.step()

        return step

    assert watched(make)[0] == []


def test_too_many_calls_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noted."""
    monkeypatch.setattr("gradinspect.checks.evidence.values.dataflow.MAX_CALLS", 2)
    assert watched(wanted)[0] == []
    found, cuts = watched(detached)

    assert found == []
    assert any("Missing gradients were not checked: there were more than" in note for note in cuts.notes())


@pytest.mark.parametrize(("make", "is_said"), [(of_both_losses, True), (rounded, False), (detached, False)])
def test_a_cut_may_be_meant_for_another_backward(make: Callable[[], Step], *, is_said: bool) -> None:
    """The remedy names that call if the cut is one that programs make on purpose."""
    ((finding,), _) = watched(make)

    assert finding.code == "GI301"
    assert ("for the other loss" in (finding.remedy or "")) == is_said


@pytest.mark.parametrize("is_compiling", [True, False])
@pytest.mark.parametrize(
    ("args", "kwargs", "pauses"),
    [((), {}, 1), ((lambda: 0.0,), {}, 0), ((), {"closure": lambda: 0.0}, 0), ((None,), {}, 1)],
)
def test_the_flow_pauses_in_a_step_without_a_closure(
    monkeypatch: pytest.MonkeyPatch, args: tuple[Any, ...], kwargs: dict[str, Any], pauses: int, *, is_compiling: bool
) -> None:
    """Only while the step runs, also if an optimizer steps in another's step; and not while torch compiles it."""
    seen: list[int] = []
    recorder = Recorder()
    flow = Dataflow(recorder)

    class Inner(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            seen.append(flow.num_pauses)

    class Outer(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            seen.append(flow.num_pauses)
            inner.step()
            seen.append(flow.num_pauses)

    with recorder, GradientCuts(recorder, flow, Path(__file__).parent):
        inner, outer = (kind([torch.ones(1, requires_grad=True)], lr=0.1) for kind in (Inner, Outer))
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: is_compiling)
        outer.step(*args, **kwargs)
        seen.append(flow.num_pauses)

    assert seen == ([0] * 4 if is_compiling else [pauses, pauses + 1, pauses, 0])
