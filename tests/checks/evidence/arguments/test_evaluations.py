"""Which comparisons without a graph are evaluations in train mode."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.training import TrainModeEvaluation
from gradinspect.recording.recorder import Recorder

X, Y, CLASSES = torch.randn(8, 4), torch.randn(8, 3), torch.arange(8) % 3
MADE, JUDGE = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), nn.Linear(4, 1)
NET = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 3))


def _layers(step: Callable[[], Any], *, is_meant: bool = False, has_stepped: bool = True) -> list[tuple[str, ...]]:
    """Return what is active in the evaluations of a step."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        log.arguments.evaluations.is_meant = lambda _layer: is_meant
        log.arguments.evaluations.has_stepped = lambda: has_stepped
        step()
        assert list(recorder.errors.notes()) == []
        facts = list(log.arguments.facts(lambda _number: None))
    return [one.layers for one in facts if isinstance(one, TrainModeEvaluation)]


def _loss(net: nn.Module = NET) -> Tensor:
    with torch.no_grad():
        return nn.functional.mse_loss(net(X), Y)


def _accuracy() -> Tensor:
    with torch.inference_mode():
        return (NET(X).argmax(1) == CLASSES).float().mean()


def _accuracy_of_max() -> Tensor:
    with torch.no_grad():
        _, chosen = torch.max(NET(X), 1)
        return chosen.eq(CLASSES).sum()


def _outputs() -> Tensor:
    with torch.no_grad():
        return torch.cat([NET(row) for row in X.split(4)])


def _loss_behind() -> Tensor:
    return nn.functional.mse_loss(_outputs(), Y)


def _accuracy_behind() -> Tensor:
    return (_outputs().argmax(1) == CLASSES).float().mean()


@pytest.mark.parametrize("evaluate", [_loss, _accuracy, _accuracy_of_max, _loss_behind, _accuracy_behind])
def test_what_is_compared_with_labels_counts(evaluate: Callable[[], Tensor]) -> None:
    """By a loss, or by == with a chosen class; once for a line that calls the layers."""
    assert _layers(lambda: (evaluate(), evaluate())) == [("BatchNorm", "dropout")]
    assert _layers(evaluate, is_meant=True) == []
    assert _layers(evaluate, has_stepped=False) == []


def test_each_kind_of_layer_counts() -> None:
    """Only one that is active."""
    assert _layers(lambda: _loss(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)))) == [("dropout",)]
    assert _layers(lambda: _loss(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))) == [("BatchNorm",)]
    assert _layers(lambda: _loss(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0), nn.LayerNorm(3)))) == []
    assert _layers(lambda: _loss(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout()).eval())) == []


def test_what_is_not_compared_does_not_count() -> None:
    """Samples, what a loss with a graph is given, and what came from a training step."""

    def of_a_teacher() -> None:
        with torch.no_grad():
            soft = NET(X)
        nn.functional.mse_loss(nn.Linear(4, 3)(X), soft).backward()

    def of_the_step() -> None:
        scores = NET(X)
        with torch.no_grad():
            (scores.argmax(1) == CLASSES).sum()

    def of_samples() -> None:
        with torch.no_grad():
            NET(X).mean()

    assert [_layers(step) for step in (of_a_teacher, of_the_step, of_samples)] == [[], [], []]


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_what_a_discriminator_is_told_of_made_up_examples_is_no_evaluation(label: float) -> None:
    """All its labels are the same; of a single example that says nothing."""

    def judged(num_rows: int) -> None:
        with torch.no_grad():
            scores = JUDGE(MADE(torch.randn(num_rows, 4)))
            nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))

    assert _layers(lambda: judged(8)) == []
    assert _layers(lambda: judged(1)) == [("dropout",)]


def test_the_classes_that_a_generator_was_asked_for_are_no_evaluation() -> None:
    """Its scores were made from them; a target that the model was given is one of an autoencoder."""

    def of_classes() -> None:
        with torch.no_grad():
            wanted = torch.randint(0, 3, (8,))
            made = NET(torch.cat([torch.randn(8, 1), nn.functional.one_hot(wanted, 3).float()], 1))
            (made.argmax(1) == wanted).sum()

    def of_inputs() -> None:
        with torch.no_grad():
            x = torch.randn(8, 4)
            nn.functional.mse_loss(MADE(x), x)

    assert _layers(of_classes) == []
    assert _layers(of_inputs) == [("dropout",)]


def test_the_batch_that_was_trained_on_is_no_evaluation() -> None:
    """As a search along a line computes it; other labels of the same shape are one."""

    def step(labels: Tensor) -> None:
        nn.functional.mse_loss(NET(X), Y[torch.arange(8)]).backward()
        with torch.no_grad():
            nn.functional.mse_loss(NET(X), labels)

    assert _layers(lambda: step(Y.clone())) == []
    assert _layers(lambda: step(Y + 1)) == [("BatchNorm", "dropout")]
