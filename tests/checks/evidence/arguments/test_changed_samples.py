"""Which lines change samples again, of those that a dataset writes to."""

import itertools
from collections.abc import Callable

import pytest
import torch

from gradinspect.checks.evidence.arguments import changed_samples
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.values import ChangedSamples
from gradinspect.recording.recorder import Recorder


class Samples:
    """Data, and what is done to each sample that is asked for."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Make a few."""
        self.data = torch.rand(4, 3) + 1
        self.array = self.data.numpy().copy()
        self.change = change

    def __getitem__(self, place: int) -> torch.Tensor:
        """Return one."""
        return self.change(self.data[place])


def times(samples: Samples, *, stacked: bool = True, notes: list[str] | None = None) -> list[int]:
    """Ask for all samples three times, and return how often some were changed that had been changed before."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        for _ in range(3):
            batch = [samples[place] for place in range(4)]
            if stacked:
                torch.stack(batch)
        facts = [one for one in log.arguments.facts(lambda _number: None) if isinstance(one, ChangedSamples)]
        said = list(recorder.errors.notes())
    assert all("sample" in note for note in said)
    if notes is not None:
        notes += said
    return [one.num_times for one in facts]


def test_what_is_changed_in_each_epoch_is_counted() -> None:
    """From the second one on; a copy is not, nor what becomes no part of a batch, nor the same values."""
    assert times(Samples(lambda x: x.mul_(2))) == [8]
    assert times(Samples(lambda x: x.clone().mul_(2))) == []
    assert times(Samples(lambda x: x.mul_(2)), stacked=False) == []
    assert times(Samples(lambda x: x.sub_(x.mean()))) == []


def test_memory_of_numpy_is_that_of_the_dataset_too() -> None:
    """Each time it is shown by another tensor."""
    samples = Samples(torch.clone)
    rows = itertools.cycle(range(4))
    samples.change = lambda _x: torch.from_numpy(samples.array[next(rows)]).mul_(2)

    assert times(samples) == [8]


def test_samples_beyond_a_number_are_counted_as_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are looked at."""
    monkeypatch.setattr(changed_samples, "MOST_SAMPLES", 2)

    assert times(Samples(lambda x: x.mul_(2))) == [4]


def test_large_samples_are_counted_as_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each line."""
    monkeypatch.setattr(changed_samples, "MOST_ELEMENTS", 2)
    notes: list[str] = []

    assert times(Samples(lambda x: x.mul_(2)), notes=notes) == []
    assert notes == ["Not checked: 1 sample that is changed in place, larger than 2 elements."]


def test_two_lines_that_change_a_sample_are_one_change() -> None:
    """The first of them finds what the second one left in the epoch before."""

    def change(x: torch.Tensor) -> torch.Tensor:
        x += 1
        x[0] = 0
        return x

    assert times(Samples(change)) == [8]


def test_what_is_filled_anew_is_not_what_was_left() -> None:
    """A buffer for each sample, and memory that was given back and has the same address again."""
    buffers = torch.empty(4, 3)
    rows = itertools.cycle(range(4))

    def through_buffer(x: torch.Tensor) -> torch.Tensor:
        row = buffers[next(rows)]
        row.copy_(x)
        row += 1
        return row

    def in_new_memory(x: torch.Tensor) -> torch.Tensor:
        new = torch.empty(3)
        new *= 0
        new += x
        return new

    assert times(Samples(through_buffer)) == []
    assert times(Samples(in_new_memory)) == []
