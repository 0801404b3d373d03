"""Which scores are similarities of a batch with itself."""

import torch
from torch import Tensor
from torch.nn import functional

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import SelfSimilarity
from gradinspect.recording.recorder import Recorder

Z = functional.normalize(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), dim=1).requires_grad_()
OTHERS = torch.arange(6).roll(3)
DIAGONAL = torch.eye(6, dtype=torch.bool)


def similarities(scores: Tensor, target: Tensor = OTHERS, calls: int = 3) -> list[SelfSimilarity]:
    """Give scores to a loss some times, and return what is said of them."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(calls):
            functional.cross_entropy(input=scores, target=target)
        assert not list(recorder.errors.notes())
        return [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, SelfSimilarity)]


def test_the_diagonal_of_a_batch_with_itself() -> None:
    """Where the largest value of each row is on it, and no target."""
    (found,) = similarities(Z @ Z.t() / 0.1)

    assert (found.num_rows, found.num_calls) == (6, 3)
    assert 1 / 6 < found.share < 1
    assert similarities(Z @ Z.t(), calls=2) == []


def test_other_square_scores_are_not() -> None:
    """A diagonal that is hidden, or where the targets are; two batches, distances, no square, no graph."""
    own = Z @ Z.t()

    assert similarities(own.masked_fill(DIAGONAL, float("-inf"))) == []
    assert similarities(own, torch.arange(6)) == []
    assert similarities(Z @ Z.flip(0).t().roll(1, 0)) == []
    assert similarities(Z @ (Z * torch.arange(1, 7)[:, None]).t()) == []
    assert similarities(torch.cdist(Z, Z)) == []
    assert similarities(own[:, :5], OTHERS.clamp(max=4)) == []
    assert similarities(own.detach()) == []
