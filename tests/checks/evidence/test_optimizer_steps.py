"""How often each optimizer has stepped, and which one is waited for."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence import optimizer_steps
from gradinspect.checks.evidence.optimizer_steps import OptimizerSteps
from gradinspect.recording.recorder import Recorder

LIVING: list[Any] = []


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no optimizer of another test be found."""
    monkeypatch.setattr(optimizer_steps, "live_optimizers", lambda: list(LIVING))
    yield
    LIVING.clear()


def made(kind: type[torch.optim.Optimizer] = torch.optim.SGD, *, learns: bool = True, **options: Any) -> Any:
    """Make an optimizer that is found."""
    weight = nn.Parameter(torch.ones(2), requires_grad=learns)
    weight.grad = torch.ones(2) if learns else None
    LIVING.append(kind([weight], lr=0.1, **options))
    return LIVING[-1]


def test_each_optimizer_is_waited_for_until_it_has_stepped_twice() -> None:
    """By its name, one after the other; each step is told."""
    told: list[int] = []
    first, second = made(), made()
    with OptimizerSteps(Recorder(), lambda: told.append(len(told))) as steps:
        said = [steps.waits()]
        for optimizer in (second, first, first, second):
            optimizer.step()
            said.append(steps.waits())

    assert said == [
        "first had not stepped twice", "first had not stepped twice", "first had not stepped twice",
        "second had not stepped twice", None,
    ]  # fmt: skip
    assert told == [0, 1, 2, 3]
    second.step()
    assert len(told) == 4  # it no longer listens


def test_an_optimizer_that_cannot_learn_is_not_waited_for() -> None:
    """It holds frozen parameters only, or is unlike those of torch."""
    made(learns=False)
    LIVING.append(object())
    with OptimizerSteps(Recorder(), lambda: None) as steps:
        assert steps.waits() is None
        unlike = made()
        unlike.param_groups = None
        assert steps.waits() is None
        made()
        assert steps.waits() == "SGD had not stepped twice"


def test_all_objects_are_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made or copied later is noticed, and what is gone is forgotten."""
    searches: list[None] = []

    def search() -> list[object]:
        searches.append(None)
        return []

    monkeypatch.setattr(optimizer_steps, "live_optimizers", search)
    weight = nn.Parameter(torch.ones(2))
    with OptimizerSteps(Recorder(), lambda: None) as steps:
        said = [steps.waits()]
        optimizer = torch.optim.SGD([weight], lr=0.1)
        said.append(steps.waits())
        optimizer.step()
        optimizer.step()
        said.append(steps.waits())
        copied = copy.deepcopy(optimizer)
        said.append(steps.waits())
        del copied
        said.append(steps.waits())

    assert said == [None, "optimizer had not stepped twice", None, "copied had not stepped twice", None]
    assert len(searches) == 1


def test_each_backward_of_a_closure_counts() -> None:
    """A step that calls it again and again shows all that there is; one outside of it shows nothing."""
    optimizer = made()
    with OptimizerSteps(Recorder(), lambda: None) as steps:
        steps.called_backward()
        steps.called_backward()
        assert steps.waits() is not None

        def closure() -> float:
            steps.called_backward()
            return 0.0

        optimizer.step(closure)
        assert steps.waits() is None


def test_an_optimizer_at_the_place_of_one_that_is_gone_has_not_stepped() -> None:
    """Ids are used again."""
    with OptimizerSteps(Recorder(), lambda: None) as steps:
        for _ in range(20):
            optimizer = made()
            said = steps.waits()
            optimizer.step()
            optimizer.step()
            assert (said, steps.waits()) == ("optimizer had not stepped twice", None)
            LIVING.clear()
            del optimizer


@pytest.mark.parametrize("is_compiling", [True, False])
def test_what_torch_compiles_is_no_step(monkeypatch: pytest.MonkeyPatch, *, is_compiling: bool) -> None:
    """It runs no step, but looks at one."""
    told: list[None] = []
    optimizer = made()
    with OptimizerSteps(Recorder(), lambda: told.append(None)) as steps:
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: is_compiling)
        optimizer.step()
        optimizer.step()
        assert (steps.waits() is None) == (not is_compiling)

    assert len(told) == (0 if is_compiling else 2)
