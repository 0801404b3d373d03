"""What `check` does around each backward call."""

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import gradinspect, python
from torch import nn

import gradinspect as gi
from gradinspect.api.live.session import LiveSession
from gradinspect.checks.evidence import (
    before_backward,
    call_choice,
    logs,
    observer,
    optimizer_steps,
    ranks,
    watch_window,
)
from gradinspect.checks.evidence.collector_freeze import CollectorFreeze
from gradinspect.checks.evidence.kept_graphs import unused_graphs
from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.evidence.watch_window import FEW_CALLS
from gradinspect.checks.findings import Findings
from gradinspect.errors import GradInspectError
from gradinspect.request import Request
from gradinspect.runner.run import Run
from gradinspect.source import Expression, Script

COUNT = """
import sys
import gradinspect.recording.walk as walks
from gradinspect.cli import main

count = 0
original = walks.Walk.__init__

def counting(*arguments):
    global count
    count += 1
    original(*arguments)

walks.Walk.__init__ = counting
status = main(["check", "train.py", "--continue", "--steps", "3"])
print(status, count)
"""
TRAIN = """
import torch

layer = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    layer(torch.randn(5, 4)).tanh().square().mean().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_graph_is_walked_once(tmp_path: Path) -> None:
    """All observers of a backward call get the same walk."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "count.py").write_text(COUNT)
    done = python(tmp_path / "count.py", cwd=tmp_path)

    assert (done.stdout.splitlines() or [done.stderr])[-1] == "0 3"


@pytest.fixture(autouse=True)
def _not_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing depend on how long something takes, or on tensors and optimizers of other tests."""
    for limit in ("MOST_SECONDS", "MOST_WAITING"):
        monkeypatch.setattr(watch_window, limit, math.inf)
    monkeypatch.setattr(unused_graphs, "tensors_with_graph", list)
    monkeypatch.setattr(optimizer_steps, "live_optimizers", list)


class Watch:
    """A program that runs while an observer looks, and after each call, whether that has seen enough."""

    def __init__(self, num_calls: int | None = None, *, gradcheck: bool = False, **changes: Any) -> None:
        """Prepare; the changes are of the run."""

        def make(run: Run) -> ChecksObserver:
            for name, value in changes.items():
                setattr(run, name, value)
            return ChecksObserver(run, num_calls, gradcheck=gradcheck)

        self.session = LiveSession(make, "train.py")
        self.enough: list[bool] = []

    def run(self, *steps: Callable[[], object]) -> Findings:
        """Run steps, and return what was seen."""
        with self.session:
            for step in steps:
                self.session.call(step)
                self.enough.append(self.session.observer.has_enough)
        found = self.session.result()
        assert found is not None
        return found


def alone(**chosen: Any) -> Request:
    """Make a request that runs on."""
    return Request(source=Script(Path("train.py")), label="train.py", goes_on=True, **chosen)


def weight() -> torch.Tensor:
    """Make one."""
    return torch.ones(2, requires_grad=True)


@pytest.mark.slow
def test_autograd_grad_is_watched_for_two_calls_if_asked_for() -> None:
    """Else backward calls are, and as many as are cheap while nothing was found."""
    w = weight()
    grads = Watch(request=alone(grad=1)).run(*[lambda: torch.autograd.grad(w.exp().sum(), w)] * 5)
    backwards = Watch().run(*[lambda: w.exp().sum().backward()] * 5)
    both = Watch(3).run(*[lambda: w.exp().sum().backward()] * 5)

    assert (grads.num_calls, grads.num_grads) == (0, 2)
    assert (backwards.num_calls, backwards.num_grads) == (5, 0)
    assert (both.num_calls, both.num_grads) == (3, 0)


@pytest.mark.slow
def test_a_phase_is_a_line_with_its_caller_and_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with the callers of that: the same loop may be called from many lines."""
    monkeypatch.setattr(watch_window, "CHEAP_CALLS", 0)
    w = weight()

    def run_backward() -> None:
        w.exp().sum().backward()

    def one() -> None:
        run_backward()

    def other() -> None:
        run_backward()

    def called_otherwise() -> None:
        one()

    def of_two_losses(*, first: bool) -> None:
        losses = [w.exp().sum()]
        losses += [w.tanh().sum()]
        losses[first].backward()

    same, outer, several, losses = Watch(), Watch(), Watch(), Watch()
    same.run(*[one] * 3)
    outer.run(one, called_otherwise, one)
    several.run(one, other, one, other, one)
    losses.run(*[lambda number=number: of_two_losses(first=number % 2 == 0) for number in range(5)])

    assert same.enough == [False, True, True]
    assert outer.enough == [False, True, True]
    assert several.enough == losses.enough == [False, False, False, True, True]


def test_what_follows_the_last_call_belongs_to_it() -> None:
    """Up to the next operator on a parameter; then nothing of ours is left in the program."""
    w = weight()
    watch = Watch(1)
    with watch.session:
        w.exp().sum().backward()
        left = [watch.session.observer.has_left]
        torch.ones(2).exp()
        left.append(watch.session.observer.has_left)
        w.exp()
        left.append(watch.session.observer.has_left)
        y = w.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    found = watch.session.result()

    assert left == [False, False, True]
    assert found is not None
    assert (found.num_calls, found.findings) == (1, ())


@pytest.mark.slow
def test_a_program_that_was_seen_to_its_end_is_complete() -> None:
    """Not one that failed, nor a model without its training, nor one call of which the next would show more."""
    w = weight()
    steps = [lambda: w.exp().sum().backward()] * 2
    expression = Expression(module="model", text="net")

    assert Watch().run(*steps).is_complete
    assert Watch(2).run(*steps).is_complete
    assert not Watch(1).run(*steps).is_complete
    assert not Watch(has_failed=True).run(*steps).is_complete
    assert not Watch(program=expression).run(*steps).is_complete
    empty = Watch()
    with empty.session:
        w.exp()
    assert empty.session.result() is None


def test_second_derivatives_are_checked_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then it matters what torch has for it; the first are checked in a few directions."""

    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad

    w = weight()
    step = [lambda: Halved.apply(w).sum().backward()] * 2

    def refuse() -> None:
        raise GradInspectError("not here")

    assert [one.code for one in Watch(gradcheck=True).run(*step).findings] == ["GI201"]
    monkeypatch.setattr(observer, "require_autocast_switch", refuse)
    assert [one.code for one in Watch().run(*step).findings] == ["GI201"]
    with pytest.raises(GradInspectError, match="not here"):
        Watch(gradcheck=True)


def test_which_parameters_have_learned() -> None:
    """Those that got a finite gradient other than zero."""
    tensors = [torch.zeros(2, requires_grad=True) for _ in range(4)]
    learned, zero, infinite, unused = tensors
    watch = Watch()
    watch.run(lambda: (learned.exp() + zero * 0 + infinite.sqrt()).sum().backward())
    found = watch.session.observer

    assert isinstance(found, ChecksObserver)
    assert found.learned == {id(learned)}
    assert unused.grad is None


def of_two_losses() -> Iterator[Callable[[], object]]:
    """Call backward of two losses at once, then of a third that reads the first one's graph."""
    w = weight()

    def step() -> None:
        hidden = w.exp()
        first, second = hidden.square().sum(), (w * 2).exp().sum()
        torch.autograd.backward([first, second])
        third = (hidden * hidden).exp().sum()
        third.backward()

    yield step


def of_kept_graph() -> Iterator[Callable[[], object]]:
    """Keep the graph for another loss."""
    w = weight()

    def step() -> None:
        hidden = w.exp()
        first = hidden.square().sum()
        first.backward(retain_graph=True)
        (hidden * hidden).exp().sum().backward()

    yield step


def of_infinite_slope() -> Iterator[Callable[[], object]]:
    """Take a root of 0."""
    w = torch.zeros(2, requires_grad=True)

    def step() -> None:
        root = w.abs().sqrt()
        root.sum().backward()

    yield step


def of_dead_unit() -> Iterator[Callable[[], object]]:
    """Use a unit that is always negative."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    nn.init.constant_(model[0].bias, -100.0)

    def step() -> None:
        out = model(torch.ones(3, 2))
        out.sum().backward()

    yield step


def of_unit_that_dies() -> Iterator[Callable[[], object]]:
    """Let one learn once, and three times no more."""
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    nn.init.constant_(body.weight, 1.0)
    nn.init.constant_(body.bias, 1.0)

    def step() -> None:
        hidden = torch.relu(body(torch.ones(3, 2)))
        head(hidden).sum().backward()
        nn.init.constant_(body.bias, -100.0)

    yield from [step] * 4


def of_explained_zeros() -> Iterator[Callable[[], object]]:
    """Normalize over one score: its gradient is zero, as is said already."""
    model = nn.Linear(2, 1)

    def step() -> None:
        model.zero_grad()
        score = torch.softmax(model(torch.ones(3, 2)), dim=1)
        score.log().mean().backward()

    yield from [step] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "found"),
    [
        (of_two_losses, ["GI401 old=1 new=4 freed=3 backward=5 ExpBackward0"]),
        (of_kept_graph, []),
        (of_infinite_slope, ["GI501 made=1 backward=2 w"]),
        (of_dead_unit, ["GI601 zeroed=1 backward=2 0.bias 0.weight"]),
        (of_unit_that_dies, ["GI601 zeroed=1 bias=3 backward=2 body.bias body.weight"]),
        (of_explained_zeros, ["GI353 softmax=2 loss=3 backward=3"]),
    ],
)
def test_what_is_found_of_graphs_and_gradients(
    make: Callable[[], Iterator[Callable[[], object]]], found: list[str]
) -> None:
    """With the lines, counted from that of the step, and what they are about."""
    steps = list(make())
    first: int = steps[0].__code__.co_firstlineno
    watch = Watch()
    with suppress(RuntimeError), watch.session:
        for step in steps:
            watch.session.call(step)
    findings = watch.session.result()

    assert findings is not None
    texts = (
        " ".join((one.code, *(f"{place.role}={place.line - first}" for place in one.places), *one.subjects))
        for one in findings.findings
    )
    assert list(dict.fromkeys(texts)) == found


def test_the_first_of_several_losses_is_named() -> None:
    """In the advice of what to do about their graph."""
    (found,) = gi.check(next(of_two_losses()), steps=2).findings

    assert "If first at " in (found.remedy or "")


def test_an_error_of_the_program_is_explained(tmp_path: Path) -> None:
    """What was found before it is reported."""
    (tmp_path / "train.py").write_text(
        "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n"
    )
    done = gradinspect("check", "train.py", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout.startswith("GI101")


def test_calls_before_the_requested_one_are_not_observed() -> None:
    """They may have reached anything."""
    w = weight()
    watch = Watch(request=alone(backward=3))
    found = watch.run(*[lambda: w.exp().sum().backward()] * 5)

    assert found.num_calls == 3


def test_an_error_of_ours_is_counted_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has run as it would have without us."""

    def fail(*_arguments: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(before_backward, "stale_values", fail)
    w, watch = weight(), Watch()
    found = watch.run(lambda: w.exp().sum().backward())

    assert w.grad is not None
    assert found.notes[0].startswith("Not looked at: 1 call (first: ")
    assert not found.is_complete


def test_a_program_of_many_calls_of_autograd_grad_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it calls no backward between them."""
    monkeypatch.setattr(call_choice, "MAX_GRADS_OBSERVED", 2)
    monkeypatch.setattr(call_choice, "MAX_GRADS_ALONE", 4)
    w = weight()
    watch = Watch()
    found = watch.run(*[lambda: torch.autograd.grad(w.sum(), w)] * 6)

    assert watch.enough == [False, False, False, True, True, True]
    assert (found.num_calls, found.num_grads) == (0, 2)
    assert found.notes == ("Not checked: what comes after 4 autograd.grad() calls in a row.",)
    assert not found.is_complete


def test_a_call_without_a_graph_counts() -> None:
    """It is explained, and watched for like any other."""
    x = torch.ones(2)
    watch = Watch(2)
    with watch.session:
        for _ in range(3):
            with suppress(RuntimeError):
                x.sum().backward()
            watch.enough.append(watch.session.observer.has_enough)
    found = watch.session.result()

    assert found is not None
    assert found.num_calls == 2
    assert {one.code for one in found.findings} == {"GI302"}
    assert watch.enough == [False, True, True]


@pytest.mark.slow
def test_the_collector_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not look at a record while backward runs, unless the program decides on that itself."""
    monkeypatch.setattr(CollectorFreeze, "is_the_programs", False)  # conftest.py froze what was imported
    frozen: list[int] = []
    w = weight()
    w.register_hook(lambda _gradient: frozen.append(gc.get_freeze_count()))
    before = gc.get_freeze_count()
    gc.unfreeze()
    try:
        Watch().run(lambda: w.exp().sum().backward())
        after = gc.get_freeze_count()
        gc.freeze()
        count = gc.get_freeze_count()
        Watch().run(lambda: w.exp().sum().backward())
        assert CollectorFreeze.is_the_programs
        assert (frozen[0] > 0, after) == (True, 0)
        assert gc.get_freeze_count() == frozen[1] == count
    finally:
        gc.unfreeze()
        if before:
            gc.freeze()


def test_a_program_that_calls_nothing_any_more_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second call on, and sooner when enough was seen."""
    monkeypatch.setattr(watch_window, "CHEAP_CALLS", 3)
    w = weight()
    stops: list[float] = []
    seen: list[list[float]] = []
    watch = Watch(stop_after=stops.append)

    def step() -> None:
        w.exp().sum().backward()
        seen.append(list(stops))

    watch.run(*[step] * 4)

    assert seen == [[], [30.0], [30.0, 10.0], [30.0, 10.0]]


def test_more_calls_are_watched_while_nothing_was_found() -> None:
    """A finding is certain after two, but another may need a few more."""
    wrong, right = Watch(), Watch()
    wrong.run(*[next(of_infinite_slope())] * (FEW_CALLS + 2))
    w = weight()
    right.run(*[lambda: w.exp().sum().backward()] * (FEW_CALLS + 2))

    assert wrong.enough == [False] * (FEW_CALLS - 1) + [True] * 3
    assert right.enough == [False] * (FEW_CALLS + 2)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without it")
@pytest.mark.parametrize(("partners", "is_exchanged"), [({0}, False), ({0, 1}, True)])
def test_ranks_that_average_are_compared(
    monkeypatch: pytest.MonkeyPatch, partners: set[int], *, is_exchanged: bool
) -> None:
    """A rank alone has nobody to compare itself with; one that does not come is named."""
    store = torch.distributed.HashStore()
    monkeypatch.setattr(ranks, "PATIENCE", timedelta(milliseconds=10))
    monkeypatch.setattr(logs, "ranks_of_this_run", lambda: ranks.Ranks(0, 2, store))
    monkeypatch.setattr(before_backward, "ranks_that_average", lambda _recorder, _num_ranks: partners)
    w = weight()
    watch = Watch()
    found = watch.run(*[lambda: w.exp().sum().backward()] * 3)

    assert (found.rank, found.num_ranks) == (0, 2)
    assert watch.enough == [False, True, True]  # all ranks must end at the same call
    assert store.check(["backward #1/0"]) == is_exchanged
    assert bool(found.notes) == is_exchanged
