"""What the callbacks of trainers share, and the callbacks where their trainer is installed."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode

import gradinspect as gi
from gradinspect.api.live.session import LiveSession
from gradinspect.checks.evidence import watch_window
from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.trainers import watching
from gradinspect.trainers.watching import TrainingWatch


def train(watch: TrainingWatch, num_steps: int, *, clears: bool = True) -> None:
    """Train as a trainer does, with its events."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    watch.training_begins("Net")
    for _ in range(num_steps):
        watch.step_begins()
        net(torch.ones(3, 2)).square().mean().backward()
        optimizer.step()
        if clears:
            optimizer.zero_grad()
        watch.step_ends()
    watch.training_ends()


def test_the_first_steps_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Findings are kept and printed; nothing stays patched, not even while the training goes on."""
    good, bad = (TrainingWatch(checks=True, capture_step=None, save_to=None) for _ in range(2))
    train(good, 20)
    train(bad, 3, clears=False)

    assert good.findings is not None
    assert not good.findings
    assert good.findings.num_calls <= 12
    assert bad.findings is not None
    assert [finding.code for finding in bad.findings] == ["GI362"]
    assert "GI362  gradients of earlier steps" in capsys.readouterr().err
    assert _get_current_function_mode() is None


def test_the_graph_of_one_step_is_recorded(tmp_path: Path) -> None:
    """And written, in the middle of what is checked too."""
    watch = TrainingWatch(checks=True, capture_step=2, save_to=tmp_path / "step.json")
    train(watch, 4)

    assert watch.graph is not None
    assert {call.path for call in watch.graph.modules} == {""}
    assert gi.load(tmp_path / "step.json") == watch.graph
    assert watch.findings is not None


def test_a_step_that_never_comes() -> None:
    """There is no graph; a file without a step is an error."""
    watch = TrainingWatch(checks=False, capture_step=9, save_to=None)
    train(watch, 2)

    assert watch.graph is None
    with pytest.raises(gi.GradInspectError, match="has no step to record"):
        TrainingWatch(checks=True, capture_step=None, save_to="a.json")


def broken(*_given: object, **_named: object) -> None:
    """Fail as a defect of ours would."""
    raise ZeroDivisionError("ours")


@pytest.mark.parametrize(
    ("owner", "name"),
    [(LiveSession, "__enter__"), (ChecksObserver, "result"), (watching, "without_comments")],
)
def test_a_problem_of_ours_does_not_end_the_training(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it happens: it is said once, nothing stays patched, and the weights are those without us."""
    monkeypatch.setattr(owner, name, broken)
    watch = TrainingWatch(checks=True, capture_step=14, save_to=None)
    train(watch, 16)

    assert isinstance(watch.problem, ZeroDivisionError)
    said = "gradinspect no longer watches this training, which goes on: ZeroDivisionError: ours"
    assert capsys.readouterr().err.count(said) == 1
    assert _get_current_function_mode() is None


def test_what_was_found_before_a_problem_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said what was not looked at."""
    # a slow machine ends the watch before the calls that fail
    for limit in ("MOST_SECONDS", "MOST_WAITING"):
        monkeypatch.setattr(watch_window, limit, math.inf)
    kept, calls = ChecksObserver.begin, iter(range(99))
    monkeypatch.setattr(ChecksObserver, "begin", lambda *given: kept(*given) if next(calls) < 2 else broken())
    watch = TrainingWatch(checks=True, capture_step=None, save_to=None)
    train(watch, 5, clears=False)

    assert watch.findings is not None
    assert not watch.findings.is_complete
    assert re.fullmatch(
        r"Not looked at: 3 calls \(first: test_watching\.py:\d+, ZeroDivisionError\)\.", watch.findings.notes[-1]
    )
    assert "Not looked at: 3 calls" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The graph is kept, and the error is one sentence."""
    watch = TrainingWatch(checks=False, capture_step=1, save_to=tmp_path / "missing" / "step.json")
    train(watch, 2)

    assert watch.graph is not None
    assert watch.problem is not None
    assert capsys.readouterr().err.startswith("gradinspect no longer watches this training, which goes on: ")


@pytest.mark.filterwarnings("default")  # its own
def test_the_callback_of_lightning() -> None:
    """It is told of the steps by the real trainer."""
    lightning = pytest.importorskip("lightning", reason="lightning is not installed.")
    from gradinspect.trainers.lightning import GradInspectCallback

    class Module(lightning.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

        def training_step(self, batch: torch.Tensor, _number: int) -> torch.Tensor:
            return self.last(self.first(batch).detach()).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callback = GradInspectCallback(capture_step=13)
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_steps=14, callbacks=[callback], **options)
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(64, 4), batch_size=4))

    assert callback.watch.findings is not None
    assert [finding.code for finding in callback.watch.findings] == ["GI301"]
    assert callback.watch.graph is not None
    assert callback.watch.graph.find("AddmmBackward0", module="last")


@pytest.mark.filterwarnings("default")  # its own
def test_the_callback_of_transformers(tmp_path: Path) -> None:
    """It is told of the steps by the real trainer."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed.")
    from gradinspect.trainers.transformers import GradInspectCallback

    config = transformers.GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=9, n_positions=8)
    rows = [{"input_ids": torch.arange(4), "labels": torch.arange(4)} for _ in range(8)]
    callback = GradInspectCallback(capture_step=2)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=3, report_to=[], disable_tqdm=True, use_cpu=True, save_strategy="no"
    )
    model = transformers.GPT2LMHeadModel(config)
    transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[callback]).train()

    assert callback.watch.findings is not None
    assert callback.watch.graph is not None
    assert callback.watch.graph.find(module="transformer.h.0.mlp")
