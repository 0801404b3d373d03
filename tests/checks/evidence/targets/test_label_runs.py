"""Whether the classes of labels come one after another."""

from collections.abc import Callable, Iterator

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import LabelRuns
from gradinspect.recording.recorder import Recorder

MODEL, SCORE = nn.Linear(4, 5), nn.Linear(4, 1)


def classes_of(batches: Iterator[Tensor], reduction: str = "mean") -> list[LabelRuns]:
    """Learn some labels, and return what is said of them."""

    def step() -> Tensor:
        labels = next(batches)
        return functional.cross_entropy(MODEL(torch.randn(len(labels), 4)), labels, reduction=reduction).sum()

    return facts_of(LabelRuns, step, calls=16)


def test_one_class_after_another() -> None:
    """Whole batches of it, or nearly."""
    (whole,) = classes_of(iter(torch.arange(4).repeat_interleave(64).split(16)))
    mixed = torch.arange(4).repeat_interleave(64)
    mixed[::6] = torch.randint(4, (43,))
    (nearly,) = classes_of(iter(mixed.split(16)))

    assert (whole.num_kinds, whole.num_runs, whole.share, whole.labels) == (4, 4, 1.0, 16)
    assert nearly.num_kinds == 4
    assert 0.8 < nearly.share < 1


@pytest.mark.parametrize(
    "labels",
    [
        torch.arange(4).repeat(64),
        torch.arange(4).repeat_interleave(64)[torch.randperm(256, generator=torch.Generator().manual_seed(0))],
        torch.arange(2).repeat_interleave(16).repeat(8),  # another class in each call, as real and made up
        torch.zeros(256, dtype=torch.long),
        (torch.arange(256) > 240).long(),  # one class has nearly all
    ],
    ids=["in turn", "shuffled", "alternating", "one", "rare"],
)
def test_what_is_mixed_or_one_class_is_not(labels: Tensor) -> None:
    """Nor what changes with each batch."""
    assert classes_of(iter(labels.split(16))) == []


def test_few_labels_and_weighed_ones_say_nothing() -> None:
    """What a policy chose comes in runs, too."""
    in_order = torch.arange(4).repeat_interleave(64)

    assert classes_of(iter(torch.arange(4).repeat_interleave(16).split(4))) == []
    assert classes_of(iter(in_order.split(16)), reduction="none") == []


def test_a_column_of_labels_is_read_and_a_sequence_is_not() -> None:
    """The labels of a document belong together."""
    columns = iter(torch.arange(2).repeat_interleave(128)[:, None].float().split(16))
    places = iter(torch.arange(4).repeat_interleave(64).view(16, 2, 8))

    def of_columns() -> Tensor:
        labels = next(columns)
        return functional.binary_cross_entropy_with_logits(SCORE(torch.randn(len(labels), 4)), labels)

    def of_places() -> Tensor:
        return functional.cross_entropy(MODEL(torch.randn(2, 8, 4)).transpose(1, 2), next(places))

    assert [one.num_kinds for one in facts_of(LabelRuns, of_columns, calls=16)] == [2]
    assert facts_of(LabelRuns, of_places, calls=16) == []


def runs_in(learn: Callable[[], None]) -> list[LabelRuns]:
    """Run loops of a program, and return what is said of its labels."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        learn()
        assert list(recorder.errors.notes()) == []
        facts = list(log.arguments.facts(lambda _number: None))
    return [one for one in facts if isinstance(one, LabelRuns)]


def test_a_loop_over_tasks_asks_for_their_classes() -> None:
    """A model that learns one class after the other; a loop over epochs does not change what the one inside draws."""
    tasks = [torch.full((64,), task) for task in range(4)]

    def of_tasks() -> None:
        for labels in tasks:
            for _ in range(2):
                for part in labels.split(16):
                    functional.cross_entropy(MODEL(torch.randn(16, 4)), part)

    def of_epochs() -> None:
        for _ in range(2):
            for part in torch.cat(tasks).split(16):
                functional.cross_entropy(MODEL(torch.randn(16, 4)), part)

    assert runs_in(of_tasks) == []
    assert [one.num_runs for one in runs_in(of_epochs)] == [8]
