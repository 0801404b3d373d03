"""What hooks of tensors do to gradients, while the engine runs them."""

import sys
from collections.abc import Callable

import pytest
import torch

from gradinspect.checks.evidence.training import hook_effects
from gradinspect.checks.evidence.training.hook_effects import Effect, HookEffects
from gradinspect.recording.capture import Moment, walk_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.magnitudes import fetched

Hook = Callable[[torch.Tensor], torch.Tensor | None]


def effects(
    *rounds: Hook, on: str = "leaf", x: torch.Tensor | None = None, registers: int = 1
) -> list[tuple[Effect, int]]:
    """Run backward once for each hook on a leaf, a result or the loss, and list what was found, with how often."""
    log = HookEffects(Recorder())
    leaf = torch.ones(2, requires_grad=True) if x is None else x
    for number, hook in enumerate(rounds):
        made = leaf * torch.tensor([1.0, 2.0], dtype=leaf.dtype)
        other = made + made
        loss = (other.exp() + other).abs().sum()
        tensor = {"leaf": leaf, "made": made, "loss": loss, "other": torch.ones(2, requires_grad=True)}[on]
        handles = [tensor.register_hook(hook) for _ in range(registers)]
        if on != "leaf" or number == 0:
            log.registered(tensor, sys._getframe())
        walked = walk_graph(outputs_in(loss), Moment(source="test"))
        log.begin(walked, 7)
        loss.backward()
        log.end()
        log.settle(fetched(log.pending))
        walked.walk.close()
        for handle in handles:
            handle.remove()
    return [(effect, len(one.seen)) for effect, one in log.found() if one.backward == 7]


@pytest.mark.parametrize("on", ["leaf", "made"])
@pytest.mark.parametrize(
    ("hook", "found"),
    [
        (torch.zeros_like, [("zeroed", 1)]),
        (torch.neg, [("reversed", 1)]),
        (lambda gradient: gradient * -0.01, [("reversed", 1)]),
        (lambda gradient: gradient * -3, [("reversed", 1)]),
        (lambda gradient: gradient * 1e-10, []),
        (lambda gradient: gradient * 0.5, []),
        (lambda gradient: gradient * torch.tensor([1.0, 0.0]), []),
        (lambda gradient: gradient * torch.tensor([1.0, -1.0]), []),
        (lambda gradient: None, []),
    ],
)
def test_a_hook_that_returns_zeros_or_the_opposite(on: str, hook: Hook, found: list[tuple[Effect, int]]) -> None:
    """Of a parameter, or of a value that operators made and several read."""
    assert effects(hook, on=on) == found


@pytest.mark.parametrize("on", ["leaf", "made"])
def test_it_must_do_so_each_time(on: str) -> None:
    """A gradient that is zero once may be masked on purpose."""
    assert effects(torch.neg, torch.neg, on=on) == [("reversed", 2)]
    assert effects(torch.neg, torch.zeros_like, on=on) == []
    assert effects(torch.zeros_like, lambda gradient: None, on=on) == []


def test_only_what_gradients_pass_through_is_compared() -> None:
    """Not a tensor that is no part of the graph, nor that which backward starts with."""
    assert effects(torch.zeros_like, on="other") == []
    assert effects(torch.zeros_like, on="loss") == []


def test_gradients_of_other_dtypes() -> None:
    """Half and double precision; complex ones are not compared."""
    for dtype in (torch.float64, torch.bfloat16):
        assert effects(torch.neg, x=torch.ones(2, dtype=dtype, requires_grad=True)) == [("reversed", 1)]
    assert effects(torch.neg, x=torch.ones(2, dtype=torch.complex64, requires_grad=True)) == []


def test_a_leaf_that_is_gone_is_no_other() -> None:
    """Another tensor may have got its id."""
    log = HookEffects(Recorder())
    for _ in range(3):
        log.registered(torch.ones(2, requires_grad=True), sys._getframe())
    leaf = torch.ones(2, requires_grad=True)
    loss = (leaf * 2).sum()
    walked = walk_graph(outputs_in(loss), Moment(source="test"))
    log.begin(walked, 7)
    loss.backward()
    log.end()
    log.settle(fetched(log.pending))
    walked.walk.close()

    assert list(log.found()) == []


def test_hooks_of_results_are_forgotten_when_backward_has_seen_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that those of a long program are all looked at."""
    monkeypatch.setattr(hook_effects, "MAX_REGISTERED", 2)
    assert effects(*[torch.neg] * 5, on="made") == [("reversed", 5)]
