"""Where a NaN or an infinity comes from, of graphs in this process."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from gradinspect.checks.evidence.nonfinite import NonfiniteValues, nonfinite_value
from gradinspect.graph import Frame
from gradinspect.recording.capture import Moment, WalkedGraph, walk_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.patching.originals import ops

INF, NAN = float("inf"), float("nan")
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
Loss = Callable[[torch.Tensor], torch.Tensor]


def walked(loss: Loss, w: torch.Tensor | None = None) -> tuple[WalkedGraph, EngineCall]:
    """Compute a loss of a leaf, and walk its graph."""
    leaf = torch.zeros(2, requires_grad=True) if w is None else w
    with Recorder() as recorder:
        made = loss(leaf)
        frame = sys._getframe()
        graph = walk_graph(outputs_in(made), Moment(source="test", frame=frame), recorder)
    return graph, EngineCall(kind="backward", number=1, outputs=(made,), frame=frame, caller=frame)


def source(loss: Loss, w: torch.Tensor | None = None) -> tuple[str | None, str, bool] | None:
    """Return what made the first value that is not finite: its operator, what it is, and whether it is NaN."""
    graph, call = walked(loss, w)
    found = nonfinite_value(graph, call)
    graph.walk.close()
    if found is None:
        return None
    label = "w" if "w" in found.label.split("'") else found.label
    return None if found.node is None else graph.graph.nodes[found.node].name, label, found.is_nan


def leaf_of(*values: float) -> torch.Tensor:
    """Make a leaf."""
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize(
    ("loss", "w", "found"),
    [
        (lambda w: w.exp().sum(), None, None),
        (lambda w: (w * torch.tensor([INF, 1.0]))[1:].sum(), None, None),  # what the loss does not contain
        (lambda w: w.log().exp().sum(), None, None),
        (lambda w: (w.log() * 2).tanh().exp().sum(), leaf_of(-1.0, 1.0), ("TanhBackward0", "f32[2] with NaN", True)),
        (lambda w: (w * 1000).exp().sum(), leaf_of(1.0, 0.0), ("ExpBackward0", "f32[2] with Inf", False)),
        (lambda w: (w.reciprocal() * w).sum(), None, ("ReciprocalBackward0", "f32[2] with Inf", False)),
        (lambda w: w.log().sum(), None, ("SumBackward0", "the loss itself", False)),
        (lambda w: w.log().sum() * 0, None, ("MulBackward0", "the loss itself", True)),
        (lambda w: (w * torch.tensor([INF, 1.0])).sum(), leaf_of(1.0, 1.0), ("SumBackward0", "the loss itself", False)),
        (lambda w: (w * torch.tensor([NAN, 1.0])).sum(), None, (None, "a f32[2]", True)),
        (lambda w: w.sum(), leaf_of(NAN, 1.0), (None, "w", True)),
        (lambda w: w.exp().sum(), leaf_of(INF, 1.0), (None, "w", True)),
        (lambda w: torch.complex(w, w).log().abs().sum(), None, ("LogBackward0", "c64[2] with Inf", False)),
        (lambda w: (w[torch.tensor([0, 1])] / 0).sum(), leaf_of(1.0, 1.0), ("SumBackward0", "the loss itself", False)),
    ],
)  # fmt: skip
def test_the_first_value_that_is_not_finite(
    loss: Loss, w: torch.Tensor | None, found: tuple[str | None, str, bool] | None
) -> None:
    """Of the leaves, then of what was saved in the order of the forward pass, or else the loss itself."""
    assert source(loss, w) == found


def test_what_follows_from_a_value_is_not_said_again() -> None:
    """A leaf that has become NaN, or the same line; another line is another mistake."""
    log = NonfiniteValues()

    def said(loss: Loss, w: torch.Tensor | None = None) -> tuple[int, bool]:
        graph, call = walked(loss, w)
        found = list(log.findings(graph, call, BACKWARD))
        graph.walk.close()
        return len(found), log.explains

    def same(w: torch.Tensor) -> torch.Tensor:
        return (w * 1000 + 1000).exp().sum()

    assert said(lambda w: w.exp().sum()) == (0, False)
    assert said(same) == (1, False)
    assert said(lambda w: w.exp().sum()) == (0, False)
    assert said(same) == (0, True)
    assert said(lambda w: w.exp().sum(), leaf_of(NAN, 0.0)) == (0, True)
    assert said(lambda w: (w - 1000).neg().exp().sum()) == (1, False)


def test_a_leaf_that_was_never_explained_is_said() -> None:
    """The first time."""
    log = NonfiniteValues()
    graph, call = walked(lambda w: w.exp().sum(), leaf_of(NAN, 0.0))
    found: list[Any] = list(log.findings(graph, call, BACKWARD))
    again = list(log.findings(graph, call, BACKWARD))
    graph.walk.close()

    assert [one.code for one in found] == ["GI502"]
    assert (again, log.explains) == ([], True)


def test_a_gradient_that_was_judged_explains_what_follows() -> None:
    """From the same line, or from a leaf that has become NaN; before that nothing is explained."""
    log, other = NonfiniteValues(), NonfiniteValues()
    assert not log.explains

    def same(w: torch.Tensor) -> torch.Tensor:
        return (w * 1000 + 1000).exp().sum()

    graph, call = walked(same)
    (finding,) = other.findings(graph, call, BACKWARD)
    later, later_call = walked(lambda w: w.sum(), leaf_of(NAN, 0.0))
    log.judged([replace(finding, code="GI101")])
    assert len(list(log.findings(graph, call, BACKWARD))) == 1
    for code in ("GI501", "GI502"):
        log = NonfiniteValues()
        log.judged([replace(finding, code=code)])
        assert list(log.findings(graph, call, BACKWARD)) == []
        assert log.explains
        assert list(log.findings(later, later_call, BACKWARD)) == []
        assert log.explains
    graph.walk.close()
    later.walk.close()


def test_what_torch_cannot_judge_is_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    """As values of some dtypes, and on some devices."""

    def refuse(_tensor: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    monkeypatch.setattr(ops, "isfinite", refuse)

    assert source(lambda w: w.log().sum()) is None
