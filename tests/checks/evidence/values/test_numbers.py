"""Where a number came from that is a term of a loss."""

from threading import Thread

import numpy as np
import pytest
import torch

from gradinspect.checks.evidence.values import numbers
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.numbers import exit_of_number, number_exits, number_terms
from gradinspect.checks.facts.value_flow import Call, Read
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency.own_errors import OwnErrors

W = torch.tensor([1.0, 2.0], requires_grad=True)


def added() -> torch.Tensor:
    """Add up numbers in a loop."""
    penalty = 0.0
    for part in (W, W):
        penalty += part.square().sum().item()
    return W.sum() + 0.1 * penalty


def listed() -> torch.Tensor:
    """Make a tensor of a list of numbers."""
    found = []
    found.append(float(W.detach().norm()))
    return W.sum() - torch.tensor(found).mean()


def through_numpy() -> torch.Tensor:
    """Compute with NumPy."""
    values = W.detach().numpy()
    spread = float(np.std(values))
    return W.sum() + torch.tensor(spread)


def in_one_line() -> torch.Tensor:
    """Take the number where it is added."""
    return W.sum() + 0.5 * W.square().sum().item()


def norm() -> float:
    """Return a number."""
    value: float = W.norm().item()
    return value


def by_a_function() -> torch.Tensor:
    """Add what a function returns."""
    return W.sum() + 0.5 * norm()


def constant() -> torch.Tensor:
    """Add a number that is written out, beside one that scales something."""
    scale = W.max().item()
    return (W / scale).sum() + 1.0


def scheduled() -> torch.Tensor:
    """Add a number that no tensor gave."""
    weight = 0.5 * len(W)
    total = W.sum().item()
    return W.sum() + weight + 0 * len(str(total))


def of_data() -> torch.Tensor:
    """Add what has no graph."""
    level = float(torch.ones(2).sum())
    return W.sum() + level


def factor() -> torch.Tensor:
    """Add it within a product of two that learn."""
    level = W.max().item()
    return (W.sum() + level) * W.mean()


def exits_of(loss: "torch.Tensor | object") -> list[str]:
    """Run a function, and name what took a number out of a tensor for a term of what it returns."""
    with Recorder() as recorder:
        flow = Dataflow(recorder)
        with TorchCallLog(recorder, flow):
            root = flow.read(loss())  # type: ignore[operator]
        frames = recorder.frames
        found = []
        for term in number_terms(flow.calls, root):
            frame = flow.calls[term.made].frame
            assert frame is not None
            names, exits = flow.numbers.get(frame, frozenset()), number_exits(flow.calls, recorder.errors.leave_out)
            call = exit_of_number(list(frames.chain(frame)), names, exits, lambda one: list(frames.chain(one)))
            found += [] if call is None else [flow.calls[call].name.strip("_")]
        return found


@pytest.mark.parametrize(
    ("loss", "exits"),
    [
        (added, ["item"]), (listed, ["float"]), (through_numpy, ["numpy"]), (in_one_line, ["item"]),
        (by_a_function, ["item"]), (constant, []), (scheduled, []), (of_data, []), (factor, []),
    ],
)  # fmt: skip
def test_the_exit_of_a_number_is_found(loss: object, exits: list[str]) -> None:
    """By the statements that assign it; what is written out, or scales something, is none."""
    assert exits_of(loss) == exits


def elsewhere() -> torch.Tensor:
    """Compute a loss on a thread whose calls are not followed."""
    found: list[torch.Tensor] = []
    thread = Thread(target=lambda: found.append(W.sum() + 0.1 * W.max().item()))
    thread.start()
    thread.join()
    return found[0]


def after_a_call() -> torch.Tensor:
    """Do so after a call that is followed."""
    assert W.sum().requires_grad
    return elsewhere()


@pytest.mark.parametrize("loss", [elsewhere, after_a_call])
def test_a_loss_of_another_thread_has_no_known_terms(loss: object) -> None:
    """No call is known that made it, so there is nothing to walk back over."""
    assert exits_of(loss) == []


def test_lines_beyond_a_number_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before the last ones that take a number out of a tensor, once however often they are looked for."""
    monkeypatch.setattr(numbers, "MAX_EXITS", 1)
    errors = OwnErrors()
    weight = Read(leaf=0, is_live=True)
    calls = [Call("torch.Tensor.item", (weight,), frame, "python") for frame in range(3)]

    assert number_exits(calls, errors.leave_out) == number_exits(calls, errors.leave_out) == {2: 2}
    assert list(errors.notes()) == ["Not checked: 2 lines with a number taken out of a tensor, before the last 1."]
