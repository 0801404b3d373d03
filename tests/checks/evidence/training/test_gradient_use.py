"""What happens to gradients between backward and step, told to `GradientUse` call by call."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import CLIP_FILE, GradientUse
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.patching.originals import ops


class Loop:
    """A model with its optimizer, and a log that is told what they do."""

    def __init__(self) -> None:
        self.log = GradientUse(Recorder())
        self.model = nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def backward(self) -> None:
        """Run backward, from this line."""
        self.log.begin([(p, name) for name, p in self.model.named_parameters()], sys._getframe())
        self.model(torch.ones(3, 2)).sum().backward()
        self.log.end()

    def step(self) -> None:
        """Let the optimizer step."""
        self.log.before_step(self.optimizer, sys._getframe())
        self.optimizer.step()
        self.log.after_step(self.optimizer)

    def clear(self) -> None:
        """Set all gradients to None."""
        for p in self.model.parameters():
            p.grad = None
            self.log.cleared(p, sys._getframe())

    def read(self) -> None:
        """Read all gradients."""
        for p in self.model.parameters():
            self.log.read(p, sys._getframe())

    def found(self) -> list[str]:
        """List what was wrong."""
        self.log.conclude([self.optimizer])
        return [misuse.kind for misuse in self.log.found.values()]


def test_a_loop_in_order_is_right() -> None:
    """Clear, backward, step, and clear again."""
    loop = Loop()
    for _ in range(3):
        loop.clear()
        loop.backward()
        loop.step()

    assert loop.found() == []


def test_several_backward_calls_before_a_step_accumulate() -> None:
    """The gradients are new to the step."""
    loop = Loop()
    for _ in range(2):
        loop.backward()
        loop.backward()
        loop.step()
        loop.clear()

    assert loop.found() == []


def test_a_used_gradient_that_backward_adds_to_is_found_at_the_next_step() -> None:
    """With the names of all parameters."""
    loop = Loop()
    for _ in range(2):
        loop.backward()
        loop.step()
    (misuse,) = loop.log.found.values()

    assert misuse.kind == "added"
    assert misuse.names == ("weight", "bias")


def test_at_the_end_a_single_optimizer_need_not_step_again() -> None:
    """The next step would use the same gradients, if it follows a backward on the same line as before."""
    same, other = Loop(), Loop()
    for number in range(2):
        same.backward()
        if number == 0:
            same.step()
    other.backward()
    other.step()
    other.backward()

    assert same.found() == ["added"]
    assert other.found() == []


def test_zeros_are_as_good_as_none() -> None:
    """Also if the version of the gradient does not show that it was written."""
    loop = Loop()
    for _ in range(2):
        loop.backward()
        loop.step()
        for p in loop.model.parameters():
            assert p.grad is not None
            p.grad.data.zero_()

    assert loop.found() == []


def test_gradients_that_are_cleared_before_the_step() -> None:
    """Unless the program has set others in their place."""
    cleared, replaced = Loop(), Loop()
    for loop in (cleared, replaced):
        loop.backward()
        loop.clear()
    for p in replaced.model.parameters():
        p.grad = torch.ones_like(p)
    cleared.step()
    replaced.step()

    assert cleared.found() == ["cleared"]
    assert replaced.found() == []


def test_a_dropped_gradient_is_one_that_nobody_used() -> None:
    """Neither a step nor the program itself."""
    dropped, read = Loop(), Loop()
    for loop in (dropped, read):
        loop.backward()
    read.log.read(read.model.weight, sys._getframe())
    for loop in (dropped, read):
        loop.clear()

    assert [one.num_dropped for one in dropped.log.parameters()] == [True, True]
    assert [one.num_dropped for one in read.log.parameters()] == [False, True]


def test_an_unobserved_backward_may_have_reached_anything() -> None:
    """Nothing is said of gradients that it has added to."""
    loop = Loop()
    loop.backward()
    loop.step()
    loop.log.unobserved()
    loop.backward()
    loop.step()

    assert loop.found() == []


def test_gradients_cleared_between_backward_calls_of_one_step_are_lost() -> None:
    """It is said when it has happened before two steps in a row."""
    loop = Loop()
    for _ in range(2):
        for _ in range(3):
            loop.clear()
            loop.backward()
        loop.step()

    assert loop.found() == ["partial"]


def test_one_gradient_that_is_not_used_is_no_habit() -> None:
    """A program may leave a step out."""
    loop = Loop()
    for number in range(4):
        loop.clear()
        loop.backward()
        if number != 1:
            loop.step()

    assert loop.found() == []


def test_a_step_that_is_looked_at_again_inside_of_its_closure_is_one_step() -> None:
    """A line search clears and computes gradients several times in each."""
    loop = Loop()
    for _ in range(3):
        loop.log.repeated_step_begins()
        loop.log.wake()
        for _ in range(3):
            loop.clear()
            loop.backward()
        loop.log.after_step(loop.optimizer)
        loop.step()

    assert loop.found() == []


def test_a_gradient_that_was_read_is_used() -> None:
    """By the program's own code."""
    loop = Loop()
    for _ in range(3):
        for _ in range(2):
            loop.clear()
            loop.backward()
            for p in loop.model.parameters():
                loop.log.read(p, sys._getframe())
        loop.step()

    assert loop.found() == []


def clip(loop: Loop, max_norm: float = 1.0) -> None:
    """Tell the log that torch's own clipping function reads all gradients."""
    made: dict[str, Any] = {"sys": sys}
    source = "def clip_grad_norm_(log, tensors, max_norm):\n for one in tensors: log.read(one, sys._getframe())"
    exec(compile(source, CLIP_FILE, "exec"), made)  # noqa: S102  # by its file it is known
    made["clip_grad_norm_"](loop.log, list(loop.model.parameters()), max_norm)


def unscale(loop: Loop, factor: float = 0.5) -> None:
    """Tell it that a GradScaler divides them."""
    gradients = [p.grad for p in loop.model.parameters() if p.grad is not None]
    loop.log.unscale(gradients, torch.tensor(factor), sys._getframe())


def after(events: str) -> list[str]:
    """Run a loop written as letters, each in a line of its own, and list what was wrong."""
    loop = Loop()
    ways: dict[str, Callable[[], object]] = {
        "b": loop.backward,
        "s": loop.step,
        "c": loop.clear,
        "k": lambda: clip(loop),
        "m": lambda: clip(loop, float("inf")),
        "u": lambda: unscale(loop),
        "1": lambda: unscale(loop, 1.0),
        "?": loop.log.unobserved,
        "r": loop.read,
    }
    for event in events:
        ways[event]()
    return loop.found()


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ("bkscbkscbks", []),
        ("bsckbsckbs", ["early"]),  # clipped when there is nothing new
        ("bsc?kbs", []),
        ("kbscbs", ["early"]),
        ("bskbskbs", ["added", "early"]),
        ("bsk", []),
        ("bskcb", ["late"]),
        ("bkskcb", []),  # clipped well in the step before
        ("mbscmbs", []),  # with an infinite limit, it only measures
        ("bkus", ["scaled"]),
        ("buks", []),
        ("bk1s", []),
        ("bkusc", ["scaled"]),
        ("bkscbus", []),
        ("bcs", ["cleared"]),
        ("bscbcs", ["cleared"]),
        ("bcbs", []),
        ("brcbs", []),
        ("cbcbscbcbs", ["partial"]),
        ("cbrcbscbrcbs", []),
        ("bbsbbs", ["added"]),
        ("bs?bs", []),
        ("bsb?bs", []),
        ("bsb?s", []),
        ("b?s", []),
        ("bsbcbs", []),
        ("bsb", ["added"]),
        ("bscb", []),
    ],
)
def test_what_is_wrong_follows_from_the_order(events: str, found: list[str]) -> None:
    """Of backward, step, clearing, clipping, unscaling and reading, and of calls that are not observed."""
    assert sorted(after(events)) == found


def test_each_misuse_has_its_lines() -> None:
    """Those of the parameters that it is about."""
    loop = Loop()
    clip(loop)
    loop.backward()
    loop.step()
    (early,) = loop.log.found.values()
    frames = {"clipped": early.clipped, "backward": early.backward, "step": early.step}

    assert {role: frame and frame.code for role, frame in frames.items()} == {
        "clipped": 'made["clip_grad_norm_"](loop.log, list(loop.model.parameters()), max_norm)',
        "backward": "self.log.begin([(p, name) for name, p in self.model.named_parameters()], sys._getframe())",
        "step": "self.log.before_step(self.optimizer, sys._getframe())",
    }
    assert (early.optimizer, early.names) == ("self.optimizer", ("weight", "bias"))


def test_the_first_use_that_is_known_is_kept() -> None:
    """Of the latest call that knows it."""
    loop, frame = Loop(), sys._getframe()
    weight, bias = loop.model.parameters()
    for uses in ({id(weight): 7, id(bias): 9}, {id(weight): 17}, None):
        loop.log.begin([(weight, "weight"), (bias, "bias")], frame, uses=uses)

    assert [one.first_use for one in loop.log.parameters()] == [17, 9]
    assert [one.num_reached for one in loop.log.parameters()] == [3, 3]


def test_gradients_that_cannot_be_counted_may_be_other_than_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of some kinds of tensors."""

    def refuse(_gradient: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    loop = Loop()
    loop.backward()
    loop.step()
    for p in loop.model.parameters():
        assert p.grad is not None
        p.grad.data.zero_()
    with monkeypatch.context() as patch:
        patch.setattr(ops, "count_nonzero", refuse)
        loop.backward()
    loop.step()

    assert loop.found() == ["added"]


def test_a_gradient_that_is_read_without_a_frame_is_not_used() -> None:
    """Nobody of the program has read it."""
    loop = Loop()
    loop.backward()
    loop.log.read(loop.model.weight, None)

    assert [one.read for one in loop.log.parameters()] == [0, 0]


@pytest.mark.parametrize(("clears", "found"), [(False, ["closure"]), (True, [])])
def test_a_closure_that_is_called_again_must_clear_the_gradients(*, clears: bool, found: list[str]) -> None:
    """LBFGS calls it several times in a step."""
    loop = Loop()
    loop.optimizer = torch.optim.LBFGS(loop.model.parameters(), max_iter=4)
    lines: list[int | None] = []

    def closure() -> torch.Tensor:
        if clears:
            loop.clear()
        loop.log.begin([(p, name) for name, p in loop.model.named_parameters()], sys._getframe())
        loss = (loop.model(torch.ones(3, 2)) - 1).square().mean()
        loss.backward()
        loop.log.end()
        lines.append(loop.log.backward)
        return loss

    loop.backward()  # before the step: what it leaves is another matter
    loop.log.before_step(loop.optimizer, sys._getframe())
    loop.optimizer.step(closure)
    loop.log.after_step(loop.optimizer)
    misuses = list(loop.log.found.values())

    assert [one.kind for one in misuses] == found
    first = loop.log.recorder.frames.record(lines[0], Path())
    assert [one.backward for one in misuses] == [first] * len(found)
    assert [one.names for one in misuses] == [("weight", "bias")] * len(found)
