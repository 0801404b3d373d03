"""Which labels a loss does not know, of the calls of a program."""

import torch
from torch.nn import functional

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import UnknownLabels
from gradinspect.recording.recorder import Recorder

X = torch.linspace(-1, 1, 4)


def labels(*targets: list[float], loss: str = "soft_margin_loss", **options: object) -> list[UnknownLabels]:
    """Call a loss on one line, with some targets, and return what is said of them."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for target in targets:
            given = [X] if loss != "margin_ranking_loss" else [X, X.flip(0)]
            getattr(functional, loss)(*given, torch.tensor(target, dtype=torch.float32), **options)
        return [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, UnknownLabels)]


def test_zeros_among_ones_are_no_signs() -> None:
    """Of any of these losses, where no call on the line has a -1."""
    (found,) = labels([0, 1, 1, 0], [1, 1, 1, 1], loss="margin_ranking_loss")

    assert (found.loss, found.wants_signs, found.least, found.most) == ("margin_ranking_loss", True, 0, 1)
    assert labels([0, 1, 1, 0], [1, -1, 1, 1]) == []
    assert labels([1, 1, 1, 1]) == labels([0, 0, 0, 0]) == labels([0.0, 0.5, 1, 1]) == []


def test_what_is_outside_of_0_and_1_is_no_probability() -> None:
    """But it may be left out by weights, or from single elements."""
    bce = "binary_cross_entropy_with_logits"
    (found,) = labels([-1, 1, 1, 1], [0, 1, 0, 1], loss=bce)

    assert (found.wants_signs, found.least, found.most) == (False, -1, 1)
    assert labels([0, 0.3, 1, 1], loss=bce) == []
    assert labels([-1, 1, 1, 1], loss=bce, reduction="none") == []
    assert labels([-1, 1, 1, 1], loss=bce, weight=torch.ones(4)) == []
