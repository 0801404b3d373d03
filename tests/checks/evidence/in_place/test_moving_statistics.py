"""Frozen parts whose eval() is undone, told to `Modes` as torch calls it."""

import sys

import pytest
from torch import nn, ones

from gradinspect.checks.evidence.training.modes import Modes
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.patching.noticing import noticing
from gradinspect.torch_api.patching.patches import patched

TRUNK, HEAD = 0, 1


@pytest.mark.parametrize(
    ("calls", "layers"),
    [
        ("eval train call call", ("1",)),
        ("eval train call", None),
        ("eval train thaw call call", None),
        ("eval call train call call", None),  # in eval mode for some calls
        ("eval train eval call call", None),
        ("train call call", None),
        ("eval train own call call", None),
    ],
)
def test_eval_of_a_frozen_part_is_undone_before_it_was_ever_called(calls: str, layers: tuple[str, ...] | None) -> None:
    """By train() of the model that has it; if the part itself is put into train mode, it is meant."""
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), nn.Linear(2, 1))
    model[TRUNK].requires_grad_(False)
    with Recorder() as recorder:
        log = Modes(recorder)
        with patched(noticing(nn.Module, "train", lambda module, *rest: log.switch(module, rest[-1]), recorder.turn)):
            for name in calls.split():
                if name == "call":
                    model(ones(3, 2))
                    log.begin([*model[HEAD].parameters()], recorder.frames.number_of(sys._getframe()))
                elif name == "thaw":
                    model[TRUNK].requires_grad_(True)
                else:
                    {"eval": model[TRUNK].eval, "own": model[TRUNK].train, "train": model.train}[name]()
    found = list(log.undone.found.values())

    assert [(one.part, one.layers) for one in found] == ([] if layers is None else [("0", layers)])
