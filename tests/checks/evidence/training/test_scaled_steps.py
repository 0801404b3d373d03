"""Nodes that multiply a loss by the scale of a GradScaler."""

from typing import Any

import pytest
import torch
from torch.amp import GradScaler

from gradinspect.checks.evidence.training import scaled_steps
from gradinspect.checks.evidence.training.scaled_steps import ScaledLosses, has_scale
from gradinspect.torch_api.nodes import sequence_nr


def scaler_of(scale: float = 4.0, *, enabled: bool = True) -> GradScaler:
    """Make one that has its scale."""
    scaler = GradScaler("cpu", init_scale=scale, enabled=enabled)
    scaler.scale(torch.ones(1))
    return scaler


def loss() -> torch.Tensor:
    """Make one."""
    return torch.ones(2, requires_grad=True).sum() * 2


def number_of(tensor: torch.Tensor) -> int:
    """Return the number of the node that made a tensor."""
    assert tensor.grad_fn is not None
    return sequence_nr(tensor.grad_fn)


def test_a_graph_has_the_scaler_of_its_node() -> None:
    """Of one loss, or of several at once; another graph has none."""
    log, one, other = ScaledLosses(), scaler_of(), scaler_of()
    losses: list[Any] = [loss() for _ in range(4)]
    assert log.scaler_in([number_of(losses[0])]) is None
    log.note(one, losses[0])
    log.note(other, (losses[1], "text", torch.ones(1), losses[2]))
    found = [log.scaler_in([0, number_of(tensor)]) for tensor in losses]

    assert [None if ref is None else ref() for ref in found] == [one, other, other, None]
    assert log.scaler_in([]) is None


def test_a_disabled_scaler_multiplies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of very many losses only the first are known."""
    log, made = ScaledLosses(), loss()
    log.note(scaler_of(enabled=False), made)
    assert log.scaler_in([number_of(made)]) is None
    monkeypatch.setattr(scaled_steps, "MAX_NUMBERS", 0)
    scaler, first, second = scaler_of(), loss(), loss()
    log.note(scaler, first)
    log.note(scaler, second)

    assert [log.scaler_in([number_of(one)]) is not None for one in (first, second)] == [True, False]


def test_a_scale_of_one_is_none() -> None:
    """As is that of a scaler that is gone."""
    log, made = ScaledLosses(), loss()
    one, two = scaler_of(1.0), scaler_of(2.0)
    log.note(two, made)
    found = log.scaler_in([number_of(made)])
    assert has_scale(found)
    del two

    assert not has_scale(found)
    assert not has_scale(None)
    log.note(one, made)
    assert not has_scale(log.scaler_in([number_of(made)]))
