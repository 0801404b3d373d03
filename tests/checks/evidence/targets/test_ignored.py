"""Which classes and items are ignored although they come like the others."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import CountedPadding, IgnoredClass

TABLE = nn.Embedding(10, 4, padding_idx=0)
SCORES = nn.Parameter(torch.randn(60, 5))


def at_end() -> torch.Tensor:
    """Make rows of which some are one shorter: the padding comes about as often as each of the others."""
    ids = torch.randint(1, 10, (60, 4))
    ids[torch.rand(60) < 0.4, -1] = 0
    return ids


def padded() -> Tensor:
    """Draw ids with padding at the end of each row."""
    ids = torch.randint(1, 10, (8, 12))
    ids[torch.arange(12)[None] >= torch.randint(6, 12, (8, 1))] = 0
    return ids


def background() -> Tensor:
    """Draw labels of which half are 0."""
    return torch.where(torch.rand(60) < 0.5, 0, torch.randint(1, 5, (60,)))


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (lambda: TABLE(torch.randint(10, (60,))), "item"),
        (lambda: TABLE(torch.randint(10, (8, 12))), "item"),
        (lambda: TABLE(padded()), None),
        (lambda: TABLE(at_end()), None),
        (lambda: TABLE(at_end().flip(1)), None),
        (lambda: TABLE(torch.randint(1, 10, (60,))), None),
        (lambda: functional.embedding(torch.randint(10, (60,)), TABLE.weight), None),
        (lambda: functional.embedding(torch.randint(10, (60,)), TABLE.weight, padding_idx=-1), "item"),
        (lambda: functional.cross_entropy(SCORES, torch.randint(5, (60,)), ignore_index=0), "class"),
        (lambda: functional.cross_entropy(SCORES, torch.randint(5, (60,))), None),
        (lambda: functional.cross_entropy(SCORES, background(), ignore_index=0), None),
        (lambda: functional.cross_entropy(SCORES, torch.arange(5).repeat_interleave(12), ignore_index=0), None),
    ],
)
def test_an_id_that_comes_like_the_others(step: Callable[[], object], kind: str | None) -> None:
    """What fills up rows comes in runs, and a background is more frequent."""
    torch.manual_seed(0)
    found = facts_of(IgnoredClass, step)

    assert [one.kind for one in found] == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("filled", "ignored", "padding"), [(4, 0, 4), (0, 0, None), (4, 4, None), (None, 0, None), (3, 0, None)]
)
def test_the_labels_of_padded_tokens_are_another_id(filled: int | None, ignored: int, padding: int | None) -> None:
    """Then the one that is ignored is a class, though it is frequent; without such labels nothing is known."""
    torch.manual_seed(0)

    def step() -> None:
        ids = padded()
        TABLE(ids)
        labels = torch.where(torch.rand(8, 12) < 0.7, 0, torch.randint(1, 4, (8, 12)))
        if filled is not None:
            labels[ids == 0] = filled
        functional.cross_entropy(nn.Parameter(torch.randn(96, 5)), labels.flatten(), ignore_index=ignored)

    found = [one for one in facts_of(IgnoredClass, step) if one.kind == "class"]

    assert [one.padding for one in found] == ([] if padding is None else [padding])


@pytest.mark.parametrize(("least", "count"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("is_flat", [True, False])
def test_the_blank_is_no_target(least: int, count: int, *, is_flat: bool) -> None:
    """What lies behind the length of a row is padding."""
    scores = nn.Parameter(torch.randn(20, 3, 5))
    targets = torch.randint(1, 5, (3, 4))
    targets[:, 0] = least
    targets[:, 3] = 0
    given = targets[:, :3].flatten() if is_flat else targets
    lengths = torch.tensor([20] * 3), torch.tensor([3] * 3)

    assert len(facts_of(IgnoredClass, lambda: functional.ctc_loss(scores.log_softmax(2), given, *lengths))) == count


@pytest.mark.parametrize(
    ("length", "options", "count"),
    [
        (4, {}, 1),
        (8, {}, 0),  # less padding than tokens
        (4, {"ignore_index": 0}, 0),
        (4, {"reduction": "none"}, 0),  # a mask may follow
        (4, {"weight": torch.ones(10)}, 0),
    ],
)
def test_padding_counts_as_much_as_tokens(length: int, options: dict[str, object], count: int) -> None:
    """Only where there is more of it, and the loss averages all labels."""
    head = nn.Linear(4, 10)

    def step() -> None:
        ids = torch.randint(1, 10, (8, 12))
        ids[:, length:] = 0
        functional.cross_entropy(head(TABLE(ids)).flatten(0, 1), ids.flatten(), **options)  # type: ignore[arg-type]

    found = facts_of(CountedPadding, step)
    assert [(one.label, one.num_calls) for one in found] == [(0, found[0].num_calls)] * count if count else not found


def test_labels_that_are_ignored_do_not_count() -> None:
    """By their value, as -100 is where nothing else is said, also where some tokens have it."""
    head = nn.Linear(4, 10)

    def step(label: int, ignore_index: int = -100) -> None:
        ids = torch.randint(1, 10, (8, 12))
        ids[:, 4:] = 0
        labels = torch.where(ids == 0, label, ids)
        labels[:, 0] = label
        functional.cross_entropy(head(TABLE(ids)).flatten(0, 1), labels.flatten(), ignore_index=ignore_index)

    assert not facts_of(CountedPadding, lambda: step(-100))
    assert not facts_of(CountedPadding, lambda: step(-1, ignore_index=-1))
    assert len(facts_of(CountedPadding, lambda: step(3, ignore_index=-1))) == 1


def test_the_label_after_the_last_token_may_be_padding() -> None:
    """Labels that are moved by one have padding beside a token in each row; a class that is frequent is none."""
    head = nn.Linear(4, 10)

    def step(labels: Callable[[Tensor], Tensor]) -> None:
        ids = torch.randint(1, 10, (8, 12))
        ids[:, 4:] = 0
        functional.cross_entropy(head(TABLE(ids)).flatten(0, 1), labels(ids).flatten())

    assert len(facts_of(CountedPadding, lambda: step(lambda ids: functional.pad(ids[:, 1:], (0, 1))))) == 1
    assert not facts_of(CountedPadding, lambda: step(lambda ids: torch.randint(10, (8, 12))))


def test_the_last_place_of_a_row_that_has_no_padding() -> None:
    """Its label is padding, as that of the last token of each other row is, and of no other token."""
    head = nn.Linear(4, 10)

    def step() -> None:
        rows = torch.randint(1, 10, (8, 13))
        rows[torch.arange(13)[None] >= torch.tensor([3] * 6 + [12, 4])[:, None]] = 0
        ids, labels = rows[:, :-1], rows[:, 1:]
        functional.cross_entropy(head(TABLE(ids)).flatten(0, 1), labels.flatten())

    assert [one.is_of_tokens for one in facts_of(CountedPadding, step)] == [False]


@pytest.mark.parametrize(
    ("shortest", "is_tag", "ignored", "is_found", "is_of_tokens"),
    [
        (1, False, -100, True, False),
        (1, True, -100, True, True),
        (1, False, 0, False, False),
        (10, False, -100, False, False),
    ],
)
def test_rows_that_were_filled_up(
    shortest: int, *, is_tag: bool, ignored: int, is_found: bool, is_of_tokens: bool
) -> None:
    """Without a padding_idx, the id at the ends of rows is padding; it is told whether tokens have its label, too."""
    torch.manual_seed(0)
    table, positions = nn.Embedding(10, 4), nn.Embedding(16, 4)

    def step() -> None:
        ids = torch.randint(1, 10, (8, 16))
        ids[torch.arange(16)[None] >= torch.arange(shortest, shortest + 5).repeat(2)[:8, None]] = 0
        table(ids)
        positions(torch.arange(16))
        labels = ids % 4 if is_tag else ids.clamp(max=4)
        functional.cross_entropy(nn.Parameter(torch.randn(128, 5)), labels.flatten(), ignore_index=ignored)

    found = facts_of(CountedPadding, step)

    assert [(one.label, one.filler, one.is_of_tokens) for one in found] == [(0, 0, is_of_tokens)] * is_found
