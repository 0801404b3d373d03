"""What keeps the graphs of earlier backward calls alive, among holders made by hand."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.kept_graphs import kept_history
from gradinspect.checks.facts.backward_calls import EarlierCall
from gradinspect.checks.facts.graphs import KeptHistory
from gradinspect.graph import Frame
from gradinspect.observers.graphs.holders import HeldGroup, Store
from gradinspect.observers.graphs.live_graph import reachable
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.nodes import next_sequence_nr, sequence_nr

HERE = Path(__file__)
ADDS = Store(str(HERE), 5, "kept.append(y)", adds=True)
SETS = Store(str(HERE), 6, "kept = []", adds=False)


class Loop:
    """Iterations that call backward, and what is alive when the last one is about to do so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, stores: tuple[Store, ...] = (SETS, ADDS)) -> None:
        self.w = torch.ones(2, requires_grad=True)
        self.rounds: list[EarlierCall] = []
        self.kept: list[torch.Tensor] = []
        self.options: dict[str, Any] = {"name": "kept[*]", "is_cut": False, "stored_at": stores}
        options, recorder = self.options, Recorder()
        self.recorder = recorder

        class Search:
            """Finds one holder of all."""

            def __init__(self, frame: FrameType | None) -> None:
                assert frame is not None

            def groups(self, tensors: list[torch.Tensor]) -> list[HeldGroup]:
                """Group all."""
                return [HeldGroup(tensors=tensors, **options)]

        monkeypatch.setattr(kept_history, "HolderSearch", Search)
        monkeypatch.setattr(kept_history, "tensors_with_graph", lambda: list(self.kept))

    def loss(self) -> torch.Tensor:
        """Make one, always on the same line."""
        return (self.w * 2).exp().sum()

    def call(self, loss: torch.Tensor) -> EarlierCall:
        """Note that backward was called."""
        nodes = frozenset(sequence_nr(node) for node in reachable([loss.grad_fn]))
        self.rounds.append(
            EarlierCall(
                name=f"backward() #{len(self.rounds) + 1}",
                frame=Frame(file="train.py", line=9, code=""),
                root=None,
                nodes=nodes,
                clock=next_sequence_nr(),
            )
        )
        return self.rounds[-1]

    def found(self, loss: torch.Tensor) -> list[KeptHistory]:
        """List what keeps earlier graphs when backward of a loss is about to start."""
        frame = sys._getframe()
        call = EngineCall(kind="backward", number=9, outputs=(loss,), frame=frame, caller=frame)
        return kept_history.kept_history(call, self.rounds, self.recorder, HERE.parent)


def test_a_list_of_losses_keeps_each_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the lines that add to it, and how many earlier calls it holds something of."""
    loop = Loop(monkeypatch)
    with loop.recorder:
        for number in range(3):
            other = (loop.w - 1).sum()  # comes first, and is no part of the loss
            loss = loop.loss()
            loop.kept.append(loss)
            if number < 2:
                loop.call(loss)
    (found,) = loop.found(loss)

    assert (found.held_by, found.name, found.num_tensors, found.num_rounds, found.adds) == (
        "variable", "kept[*]", 2, 2, True,
    )  # fmt: skip
    assert [(frame.file, frame.line, frame.code) for frame in found.stores] == [(HERE.name, 5, "kept.append(y)")]
    assert other.requires_grad


@pytest.mark.parametrize(
    ("options", "num_found"),
    [({}, 1), ({"name": ""}, 0), ({"is_cut": True}, 0), ({"stored_at": (SETS,)}, 1), ({"stored_at": ()}, 1)],
)
def test_only_a_variable_that_is_not_a_window_grows(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], num_found: int
) -> None:
    """One that is set anew is shown with that line."""
    loop = Loop(monkeypatch)
    loop.options.update(options)
    with loop.recorder:
        for number in range(2):
            loss = loop.loss()
            if number == 0:
                loop.kept.append(loss)
                loop.call(loss)
    found = loop.found(loss)

    assert len(found) == num_found
    assert [one.adds for one in found] == [ADDS in loop.options["stored_at"]] * num_found
    assert [len(one.stores) for one in found] == [min(1, len(loop.options["stored_at"]))] * num_found


def test_what_is_not_made_again_cannot_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what this call goes through itself, nor what no call went through."""
    loop = Loop(monkeypatch)
    with loop.recorder:
        loop.kept.append((loop.w * 3).tanh())
        loop.call(loop.kept[0].sum())
        for number in range(2):
            loss = loop.loss()
            if number == 0:
                loop.kept.append(loss)
                loop.call(loss)
        other, same = (loop.w - 1).sum(), loss + loop.kept[1]
    (found,) = loop.found(loss)

    assert (found.num_tensors, found.num_rounds) == (2, 2)
    assert loop.found(other) == []
    assert loop.found(same) == []


def test_gradients_with_a_graph_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is that of an earlier call."""
    loop = Loop(monkeypatch)
    with loop.recorder:
        loss = loop.loss()
        loop.call(loss)
        later = loop.loss()
    loop.kept.append(later)
    loop.w.grad = torch.ones(2)
    assert loop.found(later) == []
    loop.w.grad = loss.expand(2).clone()
    (found,) = loop.found(later)
    loop.w.grad = None

    assert found == KeptHistory(held_by="gradient", num_tensors=1, num_rounds=1)
