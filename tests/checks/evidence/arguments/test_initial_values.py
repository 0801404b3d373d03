"""Which values count as overwritten by an initialization."""

from collections.abc import Callable

import torch
from torch import nn

from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.objectives import FilledPadding, OverwrittenValues
from gradinspect.recording.recorder import Recorder

VECTORS = torch.arange(40.0).view(10, 4)


def facts_of(run: Callable[[nn.Embedding, nn.Linear], object]) -> list[object]:
    """Make two layers, let them be set and initialized, and return what is said of it."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        run(nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 2))
        facts = log.arguments.facts(lambda _number: None)
        return [one for one in facts if isinstance(one, OverwrittenValues | FilledPadding)]


def copy(layer: nn.Module, values: torch.Tensor = VECTORS) -> None:
    """Set the weight of a layer."""
    layer.weight.data.copy_(values)


def initialize(layer: nn.Module) -> None:
    """Initialize it, if it has a weight."""
    if isinstance(layer, nn.Embedding | nn.Linear):
        nn.init.normal_(layer.weight)


def test_vectors_that_are_initialized_again() -> None:
    """By a function of torch.nn.init, or by a method."""
    for write in (initialize, lambda layer: layer.weight.data.uniform_(-1, 1)):

        def run(words: nn.Embedding, _head: nn.Linear, write: Callable[[nn.Module], object] = write) -> None:
            copy(words)
            write(words)

        assert facts_of(run) == [OverwrittenValues(num_tensors=1)]


def test_a_checkpoint_of_which_something_is_left() -> None:
    """A head that is initialized again is a new head."""

    def run(words: nn.Embedding, head: nn.Linear) -> None:
        model = nn.Sequential(words, head)
        model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
        nn.init.xavier_uniform_(head.weight)

    assert facts_of(run) == []


def test_a_checkpoint_of_which_nothing_is_left() -> None:
    """Whatever becomes of the bias."""

    def run(words: nn.Embedding, head: nn.Linear) -> None:
        model = nn.Sequential(words, head)
        model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
        model.apply(initialize)

    assert facts_of(run) == [OverwrittenValues(num_tensors=2)]


def test_what_may_be_overwritten() -> None:
    """What was read in between, what was drawn on its line, what is set again, and an orthogonal matrix."""

    def used(words: nn.Embedding, _head: nn.Linear) -> None:
        copy(words)
        words(torch.tensor([1]))
        initialize(words)

    def drawn(words: nn.Embedding, _head: nn.Linear) -> None:
        words.weight.data.copy_(torch.randn(10, 4) * 0.1)
        initialize(words)

    def again(words: nn.Embedding, _head: nn.Linear) -> None:
        for _ in range(2):
            initialize(words)
            copy(words)

    def orthogonal(words: nn.Embedding, _head: nn.Linear) -> None:
        nn.init.orthogonal_(words.weight)
        words.weight.data.normal_()

    assert [facts_of(run) for run in (used, drawn, again, orthogonal)] == [[]] * 4


def test_a_padding_row_that_was_filled() -> None:
    """It is looked up, and not zero."""

    def run(words: nn.Embedding, _head: nn.Linear) -> None:
        nn.init.xavier_uniform_(words.weight)
        words(torch.tensor([3, 0]))

    assert facts_of(run) == [FilledPadding(row=0)]


def test_padding_rows_that_are_as_they_should_be() -> None:
    """Zero from the start, set to zero again, never looked up, or of pretrained vectors."""

    def untouched(words: nn.Embedding, _head: nn.Linear) -> None:
        words(torch.tensor([3, 0]))

    def zeroed(words: nn.Embedding, _head: nn.Linear) -> None:
        initialize(words)
        words.weight.data[0] = 0
        words(torch.tensor([3, 0]))

    def never(words: nn.Embedding, _head: nn.Linear) -> None:
        initialize(words)
        words(torch.tensor([3, 1]))

    def pretrained(words: nn.Embedding, _head: nn.Linear) -> None:
        copy(words, VECTORS + 1)
        words(torch.tensor([3, 0]))

    assert [facts_of(run) for run in (untouched, zeroed, never, pretrained)] == [[]] * 4


def test_padding_rows_that_nothing_reads() -> None:
    """What leaves padding out may have any row for it: attention with a mask, packed sequences, a masked mean."""
    tokens = torch.tensor([[3, 4, 0]])

    def attention(words: nn.Embedding, _head: nn.Linear) -> None:
        initialize(words)
        mask = torch.tensor([[True, True, False]])
        nn.functional.scaled_dot_product_attention(*[words(tokens)] * 3, attn_mask=mask)

    def packed(words: nn.Embedding, _head: nn.Linear) -> None:
        initialize(words)
        nn.utils.rnn.pack_padded_sequence(words(tokens), torch.tensor([2]), batch_first=True)

    def mean(words: nn.Embedding, _head: nn.Linear) -> None:
        initialize(words)
        (words(tokens) * (tokens != 0).unsqueeze(-1)).sum(1)

    assert [facts_of(run) for run in (attention, packed, mean)] == [[]] * 3
