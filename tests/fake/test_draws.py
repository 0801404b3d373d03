"""On fake tensors a program draws the numbers of its real run, or says that it may not."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradinspect.fake import draws
from gradinspect.fake.mode import FakeRun
from gradinspect.fake.values import OTHERS, AnsweredReads

DRAWING: dict[str, Callable[[], object]] = {
    "layer": lambda: nn.Linear(100, 33),
    "embedding": lambda: nn.Embedding(1000, 57),
    "few": lambda: torch.randn(5),
    "odd number": lambda: torch.randn(1003),
    "double": lambda: torch.randn(100, 10, dtype=torch.float64),
    "half": lambda: torch.empty(101, 7, dtype=torch.bfloat16).normal_(),
    "transposed": lambda: nn.init.normal_(torch.empty(90, 70).t()),
    "truncated": lambda: nn.init.trunc_normal_(torch.empty(100, 30), std=0.02),
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(30, 40)),
    "means": lambda: torch.normal(torch.zeros(500), 1.0),
    "dropout": lambda: nn.functional.dropout(torch.ones(100, 7)),
    "shares": lambda: torch.rand(1000).bernoulli(),
    "exponential": lambda: torch.empty(1001).exponential_(),
    "pairs": lambda: torch.empty(999).log_normal_(),
    "tokens": lambda: torch.randint(3, 9, (50, 50)),
    "large numbers": lambda: torch.randint(2**40, (60, 70)),
    "order": lambda: torch.randperm(10_000),
    "recurrent": lambda: nn.LSTM(10, 20, 2, dropout=0.5)(torch.ones(7, 3, 10)),
    "many": lambda: torch.rand(draws.MOST_REDRAWN + 7),
}


def drawn_after(draw: Callable[[], object], *, fake: bool) -> tuple[list[float], tuple[str, ...]]:
    """Draw something, and then read numbers; with what is said of them."""
    generator = torch.Generator().manual_seed(4)
    reads = AnsweredReads(None, lambda: True)

    def read() -> list[float]:
        torch.manual_seed(0)
        draw()
        torch.randn(1000, generator=generator)
        own = torch.randint(1_000, (1,), generator=generator).item()
        return [own, torch.rand([]).item(), torch.randint(5, 10**6, ()).item(), torch.randperm(99)[3].item()]

    if not fake:
        return read(), ()
    with FakeRun(None, reads):
        return read(), reads.notes


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_what_is_drawn_next_is_that_of_a_real_run(draw: Callable[[], object]) -> None:
    """After weights, dropout and data have been drawn; without a note."""
    assert drawn_after(draw, fake=True) == drawn_after(draw, fake=False)


def test_numbers_of_a_lost_generator_are_said_until_it_is_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more is drawn than can be skipped, lengths are still given."""
    monkeypatch.setattr(draws, "MOST_SKIPPED", 100)
    torch.manual_seed(1)
    expected = torch.randint(1_000, (1,)).item()
    reads = AnsweredReads(None, lambda: True)

    with FakeRun(None, reads):
        torch.manual_seed(0)
        nn.Linear(100, 33)
        first = torch.randint(1_000, (1,)).item()
        (note,) = reads.notes
        torch.manual_seed(1)
        again = torch.randint(1_000, (1,)).item()

    assert 0 <= first < 1_000
    assert note.startswith(f"{OTHERS}: test_draws.py:")
    assert again == expected


def test_numbers_of_a_generator_that_is_not_seeded_are_said() -> None:
    """Torch seeds it with another number in each process."""
    torch.seed()

    with FakeRun(None, AnsweredReads(None, lambda: True)) as run:
        torch.randn(4)
        torch.randint(9, (1,)).item()

        assert OTHERS in " ".join(run.warnings)


def test_a_generator_is_lost_where_values_say_how_much_is_drawn() -> None:
    """As in a Poisson process."""
    with FakeRun(None, AnsweredReads(None, lambda: True)) as run:
        torch.manual_seed(0)
        torch.poisson(torch.full((100,), 3.0))
        torch.randint(9, (1,)).item()

        assert OTHERS in " ".join(run.warnings)
