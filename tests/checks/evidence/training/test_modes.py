"""Models that are trained in eval mode, told to `Modes` call by call."""

import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.modes import Modes
from gradinspect.recording.recorder import Recorder

Found = list[tuple[str, tuple[str, ...], tuple[str, ...]]]


def trained(
    *layers: nn.Module, before: str = "", change: Callable[[nn.Sequential], object] = nn.Module.eval,
    holds: bool = True, is_evaluated: bool = True,
) -> Found:  # fmt: skip
    """Call a model, after some calls in training, and let an optimizer step; list what was in eval mode."""
    model = nn.Sequential(nn.Linear(2, 2), *layers)
    other = nn.Linear(2, 2)
    optimizer = torch.optim.SGD((model if holds else other).parameters(), lr=0.1)
    with Recorder() as recorder:
        log = Modes(recorder)
        for mode in (*before, "e"):
            model.train()
            if mode == "e":
                change(model)
            if is_evaluated:
                with torch.no_grad():
                    model(torch.ones(3, 2))
            model(torch.ones(3, 2))
            log.begin([*model.parameters()], recorder.frames.number_of(sys._getframe()))
            log.step(optimizer, sys._getframe())
    return [(one.model, one.dropouts, one.batch_norms) for one in log.found.values()]


def eval_part(model: nn.Sequential) -> None:
    """Leave the model itself in training."""
    model[1].eval()


def freeze(model: nn.Sequential) -> None:
    """Train no layer but the first."""
    model.eval()
    model[-1].requires_grad_(False)


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        ((nn.Dropout(0.5),), [("Sequential", ("1",), ())]),
        ((nn.Dropout(0.0),), []),
        ((nn.FeatureAlphaDropout(0.1), nn.ReLU(), nn.AlphaDropout(0.2)), [("Sequential", ("1", "3"), ())]),
        ((nn.BatchNorm1d(2),), [("Sequential", (), ("1",))]),
        ((nn.BatchNorm1d(2), nn.Dropout(0.5)), [("Sequential", ("2",), ("1",))]),
        ((nn.BatchNorm1d(2, track_running_stats=False),), []),
        ((nn.ReLU(), nn.LayerNorm(2)), []),
        ((nn.LSTM(2, 2, 2, dropout=0.5),), [("Sequential", ("1",), ())]),
        ((nn.LSTM(2, 2, 2),), []),
    ],
)
def test_eval_mode_matters_for_few_layers(layers: tuple[nn.Module, ...], found: Found) -> None:
    """Those that drop something, and those with statistics."""
    assert trained(*layers) == found


def test_statistics_that_a_model_came_with_may_be_kept() -> None:
    """Unless it was trained with its own before."""
    loaded = nn.BatchNorm1d(2)
    loaded(torch.ones(3, 2))

    assert trained(loaded) == []
    assert trained(loaded, before="t") == [("Sequential", (), ("1",))]


def test_a_model_in_eval_mode_from_its_first_call_on_is_so_on_purpose() -> None:
    """Unless it was trained, or called without a graph, before."""
    assert trained(nn.Dropout(0.5), nn.BatchNorm1d(2), is_evaluated=False) == []
    assert trained(nn.Dropout(0.5), before="t", is_evaluated=False) == [("Sequential", ("1",), ())]


def test_what_is_frozen_or_left_alone_is_in_eval_mode_on_purpose() -> None:
    """A part of a model, one with frozen parameters, and one that no optimizer trains."""
    dropout = nn.Dropout(0.5)

    assert trained(dropout, change=eval_part) == []
    assert trained(dropout, nn.Linear(2, 2), change=freeze) == []
    assert trained(dropout, holds=False) == []
    assert trained(dropout, change=nn.Module.train) == []
    assert len(trained(dropout, before="ee")) == 1


def test_the_line_that_switched_the_mode_is_known() -> None:
    """That of the program, not the one in torch that switches the parts; of the latest call."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder() as recorder:
        log = Modes(recorder)
        log.switch(model, sys._getframe())
        log.switch(model.eval(), sys._getframe())
        line = sys._getframe().f_lineno - 1
        inside: dict[str, Callable[..., None]] = {"sys": sys}  # type: ignore[dict-item]
        code = compile("def train(log, part): log.switch(part, sys._getframe())", nn.modules.module.__file__, "exec")
        exec(code, inside)  # noqa: S102  # as torch calls it for the parts
        inside["train"](log, model)
        with torch.no_grad():
            model(torch.ones(3, 2))
        model(torch.ones(3, 2))
        log.begin([*model.parameters()], recorder.frames.number_of(sys._getframe()))
        log.step(optimizer, sys._getframe())
    (found,) = log.found.values()

    lines = [frame and frame.line for frame in (found.switched, found.backward, found.step)]
    assert lines == [line, line + 9, line + 10]


def test_a_model_with_a_part_in_training_or_that_is_gone_is_not_in_eval_mode() -> None:
    """As a whole it must be."""

    def thaw(model: nn.Sequential) -> None:
        model.eval()
        model[1].train()

    assert trained(nn.Dropout(0.5), change=thaw) == []
    with Recorder() as recorder:
        log = Modes(recorder)
        model, other = nn.Sequential(nn.Dropout(0.5)).eval(), nn.Linear(2, 2)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
        model(torch.ones(3, 2))
        del model
        log.begin([*other.parameters()], recorder.frames.number_of(sys._getframe()))
        log.step(optimizer, sys._getframe())

    assert log.found == {}


def test_each_model_in_eval_mode_is_found() -> None:
    """Also if another one was found before, or learns in training."""
    models = [nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)) for _ in range(3)]
    optimizer = torch.optim.SGD([one for model in models for one in model.parameters()], lr=0.1)
    with Recorder() as recorder:
        log = Modes(recorder)
        for number in (0, 2):
            models[number].eval()
            with torch.no_grad():
                models[number](torch.ones(3, 2))
            for model in models:
                model(torch.ones(3, 2))
            log.begin([*models[0].parameters(), *models[2].parameters()], recorder.frames.number_of(sys._getframe()))
            log.step(optimizer, sys._getframe())

    assert list(log.found) == [id(models[0]), id(models[2])]


def test_a_layer_has_a_mode_that_the_program_has_set() -> None:
    """Ever into eval mode, or into train mode since the last step, itself or with what contains it."""
    part, other = nn.Sequential(nn.Dropout(0.5)), nn.Dropout(0.5)
    model = nn.Sequential(part)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    with Recorder() as recorder:
        log = Modes(recorder)
        seen = [log.is_set(part[0])]
        model.train()
        log.switch(model, sys._getframe())
        seen += [log.is_set(part[0]), log.is_set(other)]
        log.step(optimizer, sys._getframe())
        seen += [log.is_set(part[0])]
        part.eval()
        log.switch(part, sys._getframe())
        part.train()
        log.switch(part, sys._getframe())
        log.step(optimizer, sys._getframe())
        seen += [log.is_set(part[0]), log.is_set(other)]

    assert seen == [False, True, False, False, True, False]
