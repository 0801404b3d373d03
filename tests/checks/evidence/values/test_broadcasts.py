"""Operators whose broadcast looks accidental, noted while they run."""

import sys

import pytest
import torch

from gradinspect.checks.evidence.values import broadcasts
from gradinspect.checks.evidence.values.broadcasts import BroadcastLog, growing_operator
from gradinspect.recording.recorder import Recorder

Shape = tuple[int, ...]


def noted(*pairs: tuple[Shape, Shape], learned: tuple[bool, bool] = (True, False)) -> list[tuple[int, Shape, Shape]]:
    """Note the subtraction of tensors of some shapes."""
    log = BroadcastLog(Recorder())
    for number, shapes in enumerate(pairs):
        inputs = [torch.ones(shape, requires_grad=one) for shape, one in zip(shapes, learned, strict=True)]
        log.note("sub", inputs, number, sys._getframe())
    found = log.operators(lambda number: None)
    assert all(one.op == "sub" and one.is_learned == learned for one in found)
    return [(one.sequence_nr, *one.shapes) for one in found]


def test_shapes_that_grow_by_accident_are_noted() -> None:
    """A column and a vector; equal shapes and plain broadcasting are not."""
    assert noted(((4, 1), (4,)), ((4,), (4,)), ((4, 3), (3,)), ((4, 1), (1, 4))) == [
        (0, (4, 1), (4,)), (3, (4, 1), (1, 4)),
    ]  # fmt: skip
    assert noted(((4,), (4, 1)), learned=(False, True)) == [(0, (4,), (4, 1))]


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones; an operator of one tensor grows nothing."""
    monkeypatch.setattr(broadcasts, "MAX_REMEMBERED", 2)
    log = BroadcastLog(Recorder())
    log.note("sub", [torch.ones(4, 1)], 0, None)

    assert log.operators(lambda number: None) == []
    assert [number for number, *_ in noted(*[((4, 1), (4,))] * 3)] == [0, 1]


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("torch.Tensor.sub", "sub"),
        ("torch.Tensor.__sub__", "sub"),
        ("torch.Tensor.__rsub__", "rsub"),
        ("torch.nn.functional.mse_loss", "mse_loss"),
        ("torch.Tensor.matmul", None),
        ("torch.Tensor.exp", None),
    ],
)
def test_operators_that_may_grow_their_result(name: str, op: str | None) -> None:
    """By the names of their functions."""
    assert growing_operator(name) == op
