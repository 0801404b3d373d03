"""The lines and names of what went wrong with gradients, for two parameters that differ in every line."""

import sys
from types import FrameType
from typing import Any
from weakref import ref

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import CLIP_FILE, GradientUse
from gradinspect.checks.facts.training import GradientMisuse
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

Found = list[tuple[str, tuple[str, ...], dict[str, int]]]


def frame_at(line: int, file: str = "") -> FrameType:
    """Return a frame of some line of a program, or one of another file that is called there."""
    made: dict[str, Any] = {"sys": sys}
    exec(compile("def here(): return sys._getframe()", file or "/nowhere/program.py", "exec"), made)  # noqa: S102
    source = "\n" * (line - 1) + f"def get(): return {'here' if file else 'sys._getframe'}()"
    exec(compile(source, "/nowhere/program.py", "exec"), made)  # noqa: S102  # as a program
    frame: FrameType = made["get"]()
    return frame


class Told:
    """Two parameters, the log, and letters for what is told: an upper one is about the second parameter."""

    def __init__(self, num_optimizers: int) -> None:
        self.log = GradientUse(Recorder())
        self.scaler: Any = None
        self.tensors = {name: nn.Parameter(torch.ones(2)) for name in "ab"}
        self.optimizers = [torch.optim.SGD(self.tensors.values(), lr=0.1) for _ in range(num_optimizers)]

    def tell(self, event: str, line: int) -> None:
        """Tell the log one thing, which happens on a line."""
        name = "ab"[event.isupper()]
        tensor, frame = self.tensors[name], frame_at(line)
        match event.lower():
            case "b" | "z" | "l":
                scaler = None if self.scaler is None else ref(self.scaler)
                uses = {id(tensor): line if event.lower() == "l" else 100}
                self.log.begin([(tensor, name)], frame, scaler, uses)
                tensor.grad = torch.zeros(2) if event in "zZ" else torch.ones(2) if tensor.grad is None else tensor.grad
                tensor.grad.add_(event not in "zZ")
                self.log.end()
            case "c":
                tensor.grad = None
                self.log.cleared(tensor, frame)
            case "k":
                self.log.read(tensor, frame_at(line, CLIP_FILE))
            case "r":
                self.log.read(tensor, frame)
            case "u":
                gradient = tensor.grad
                self.log.unscale([] if gradient is None else [gradient], torch.tensor(0.5), frame)
            case "s" | "o":
                optimizer = self.optimizers[event == "o"]
                self.log.before_step(optimizer, frame)
                self.log.after_step(optimizer)


def lines_of(misuse: GradientMisuse) -> dict[str, int]:
    """Return the lines of what went wrong, by their roles."""
    frames = {role: value for role in misuse.__struct_fields__ if isinstance(value := getattr(misuse, role), Frame)}
    return {role: frame.line for role, frame in frames.items()}


def told(events: str, num_optimizers: int = 1) -> Found:
    """Tell the log of events, each on the line of its number from 1, and list what it found."""
    all_told = Told(num_optimizers)
    for line, event in enumerate(events, 1):
        all_told.tell(event, line)
    all_told.log.conclude(all_told.optimizers)
    return [(one.kind, one.names, lines_of(one)) for one in all_told.log.found.values()]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ("bBsbBs", [("added", ("a", "b"), {"backward": 4, "step": 6})]),
        ("bBsbCBs", [("added", ("a",), {"backward": 4, "step": 7, "cleared": 5})]),
        ("bBscBs", [("added", ("b",), {"backward": 5, "step": 6, "cleared": 4})]),
        ("bBcCs", [("cleared", ("a", "b"), {"backward": 1, "cleared": 4, "step": 5})]),
        ("BbCcs", [("cleared", ("a", "b"), {"backward": 2, "cleared": 4, "step": 5})]),
        ("bBcs", []),  # one is left
        ("bBkKuUs", [("scaled", ("a",), {"backward": 1, "clipped": 3, "unscaled": 5})]),
        ("bBKuUs", [("scaled", ("b",), {"backward": 2, "clipped": 3, "unscaled": 5})]),
        ("bBkuUkuUs", [("scaled", ("a",), {"backward": 1, "clipped": 3, "unscaled": 4})]),
        ("bBukUs", []),  # divided before
        ("bBukus", []),
        ("kKbBs", [("early", ("a", "b"), {"clipped": 1, "backward": 3, "step": 5})]),
        ("KbBs", [("early", ("b",), {"clipped": 1, "backward": 3, "step": 4})]),
        ("bBskKcCbB", [("late", ("a", "b"), {"backward": 8, "step": 3, "clipped": 4})]),
        ("bBsKcCbB", [("late", ("b",), {"backward": 8, "step": 3, "clipped": 4})]),
        ("bBkskKcCbB", []),  # one of them was clipped well before
        ("bBscCbBs", []),
        ("zZszZs", []),  # zeros add nothing
        ("zZsbBs", []),
        ("zBsbBs", [("added", ("b",), {"backward": 5, "step": 6})]),
    ],
)
def test_the_lines_of_a_misuse(events: str, found: Found) -> None:
    """Those of the first parameter that it is about; of clearing, the last; and the names of just these."""
    assert told(events) == found


def test_two_optimizers_wait_for_the_next_step() -> None:
    """Each may belong to a loss of its own, so the end of the program proves nothing."""
    assert told("bBsbB", 2) == []
    assert told("bBskKcCbB", 2) == []


def test_gradients_of_another_loss_have_its_line() -> None:
    """If they were there in two steps in a row, after the step of another optimizer."""
    weight, other = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    log = GradientUse(Recorder())
    first, second = torch.optim.SGD([other], lr=0.1), torch.optim.SGD([weight], lr=0.1)
    for _ in range(2):
        for tensor in (weight, other):
            tensor.grad = None
            log.cleared(tensor, frame_at(9))
        log.begin([(other, "other"), (weight, "weight")], frame_at(1), uses={id(other): 1, id(weight): 5})
        weight.grad, other.grad = torch.ones(2), torch.ones(2)
        log.end()
        log.before_step(first, frame_at(2))
        log.after_step(first)
        log.begin([(weight, "weight")], frame_at(3), uses={id(weight): 7})
        log.end()
        log.before_step(second, frame_at(4))
        log.after_step(second)
    (found,) = log.found.values()
    lines = lines_of(found)

    assert (found.kind, found.names, lines) == ("other", ("weight",), {"other": 1, "backward": 3, "step": 4})


def test_a_scaled_loss_whose_gradients_are_not_divided() -> None:
    """By the scaler that has multiplied it, before the step; reading them is as good."""
    for events, found in (
        ("bBs", [("unscaled", ("a", "b"), {"backward": 1, "step": 3})]),
        ("bBus", [("unscaled", ("b",), {"backward": 2, "step": 4})]),
        ("bBuUs", []),
        ("bBrRs", []),
        ("ubB", []),
    ):
        one = Told(1)
        one.scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        one.scaler.scale(torch.ones(1))
        for line, event in enumerate(events, 1):
            one.tell(event, line)

        assert [(misuse.kind, misuse.names, lines_of(misuse)) for misuse in one.log.found.values()] == found


def test_what_is_kept_of_each_parameter() -> None:
    """When it was reached, and by which lines, from the first since it was cleared."""
    one = Told(1)
    for line, event in enumerate("bBbcbBs", 1):
        one.tell(event, line)
    a, b = one.log.parameters()
    chain = one.log.recorder.frames.chain

    def lines(*frames: int | None) -> list[int]:
        return [next(chain(frame or 0))[1] for frame in frames]

    assert lines(a.first_backward, a.backward, a.step, a.stepped_after, a.clearing) == [5, 5, 7, 5, 4]
    assert lines(b.first_backward, b.backward, b.step, b.stepped_after) == [2, 6, 7, 6]
    assert (a.num_reached, b.num_reached, a.num_dropped, b.num_dropped) == (3, 2, 1, 0)
    assert (a.version, b.version, one.log.num_backwards, one.log.num_steps) == (0, 0, 5, 1)
    assert one.log.with_ids({id(one.tensors["b"])}) == one.log.of([one.tensors["b"], torch.ones(1)]) == [b]
    assert not a.is_fresh
    one.tell("b", 9)
    assert (a.is_fresh, b.is_fresh) == (True, False)
