"""Losses that are nothing but similarities of outputs of the same layers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.objectives.collapses import LEAST_CALLS, CollapseLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.graph import Frame
from gradinspect.recording.recorder import Recorder

ENCODER, HEAD, OTHER = nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(4, 3)
DIRECTION = nn.Parameter(torch.randn(4, 3))
LINE = Frame(file="train.py", line=3, code="loss.backward()")
X = torch.randn(6, 4)


def similar(first: Tensor, second: Tensor) -> Tensor:
    """Return the mean similarity of rows."""
    return functional.cosine_similarity(first, second, dim=1).mean()


def num_found(loss: Callable[[], Tensor], num_calls: int = 4, others: Callable[[], Tensor] | None = None) -> int:
    """Look at a loss before some calls of backward, and at another one; return how many lines are similarities."""
    with Recorder() as recorder:
        flow = Dataflow(recorder)
        log = CollapseLog(flow)
        with TorchCallLog(recorder, flow):
            for _ in range(num_calls):
                log.begin((loss(),), LINE)
                if others is not None:
                    log.begin((others(),), None)
        facts = list(log.facts(lambda number: recorder.frames.record(number, Path(__file__).parent)))
    return sum(len(one.made) for one in facts)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: -similar(HEAD(ENCODER(X)), ENCODER(X)), 1),
        (lambda: 0.5 * -similar(HEAD(ENCODER(X)), ENCODER(X)) + -similar(ENCODER(X), HEAD(ENCODER(X))) / 2, 1),
        (lambda: torch.mean(1 - functional.cosine_similarity(ENCODER(X), ENCODER(-X))), 1),
        (lambda: 2 - 2 * similar(ENCODER(X), ENCODER(-X)), 1),
        (lambda: 0 - similar(ENCODER(X), ENCODER(-X)) - similar(ENCODER(X), HEAD(ENCODER(X))), 1),
        (lambda: similar(ENCODER(X), ENCODER(-X)) - similar(ENCODER(X), HEAD(ENCODER(X))), 0),
        (lambda: -similar(HEAD(ENCODER(X)), ENCODER(X).detach()), 0),
        (lambda: -similar(HEAD(ENCODER(X)), OTHER(X)), 0),
        (lambda: similar(ENCODER(X), ENCODER(-X)), 0),
        (lambda: similar(ENCODER(X), OTHER(X)) - similar(ENCODER(X), ENCODER(-X)), 0),
        (lambda: -similar(HEAD(ENCODER(X)), ENCODER(X)) - ENCODER(X).std(0).mean(), 0),
        (lambda: torch.relu(1 - similar(ENCODER(X), ENCODER(-X))), 0),
        (lambda: -similar(X @ DIRECTION, -X @ DIRECTION), 0),
        (lambda: -similar(ENCODER(X), DIRECTION[:1].expand(6, 3)), 0),
        (lambda: functional.cross_entropy(functional.cosine_similarity(ENCODER(X)[:, None], ENCODER(X)[None], -1),
                                          torch.arange(6)), 0),
        (lambda: functional.cosine_embedding_loss(ENCODER(X), ENCODER(-X), torch.ones(6)), 0),
        (lambda: -similar(ENCODER(X), ENCODER(-X)) * similar(ENCODER(X), ENCODER(-X)), 0),
        (lambda: -DIRECTION.sum(), 0),
    ],
)  # fmt: skip
def test_nothing_but_similarities(loss: Callable[[], Tensor], expected: int) -> None:
    """Each negated, and of two outputs of the same layers."""
    assert num_found(loss) == expected


def test_each_backward_of_a_program_counts() -> None:
    """Another one may keep the outputs apart, and a few calls are too few."""

    def loss() -> Tensor:
        return -similar(HEAD(ENCODER(X)), ENCODER(X))

    assert num_found(loss, others=lambda: -ENCODER(X).std()) == 0
    assert num_found(loss, num_calls=LEAST_CALLS - 1) == 0
    assert num_found(loss, num_calls=LEAST_CALLS) == 1


def test_what_is_maximized_is_no_loss() -> None:
    """Negated similarities that are made as large as they can be keep the outputs apart."""
    optimizer = torch.optim.SGD(ENCODER.parameters(), lr=0.1, maximize=True)

    assert num_found(lambda: -similar(HEAD(ENCODER(X)), ENCODER(X))) == 0
    del optimizer
    assert num_found(lambda: -similar(HEAD(ENCODER(X)), ENCODER(X))) == 1
