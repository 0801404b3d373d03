"""Images and masks that are turned by draws of their own."""

import random
from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import turned_apart
from gradinspect.checks.facts.targets import TurnedApart

CALLS = turned_apart.MOST_CALLS
LAYER = nn.Conv2d(1, 1, 1)
DRAW = random.Random(1)  # noqa: S311  # no secret


def flip(x: Tensor) -> Tensor:
    """Flip at random."""
    return x.flip(-1) if DRAW.random() < 0.5 else x


def flip_by_keywords(x: Tensor) -> Tensor:
    """Flip at random, in a call without positions."""
    return torch.flip(input=x, dims=(-1,)) if DRAW.random() < 0.5 else x


def turn(x: Tensor) -> Tensor:
    """Turn and shift at random."""
    return torch.roll(torch.rot90(x, DRAW.randrange(4), (-2, -1)), DRAW.randrange(9), -1)


def seen(pair: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> list[TurnedApart]:
    """Train on batches of pairs, and return what is said of them."""

    def step() -> None:
        pairs = [pair(torch.rand(1, 6, 6), torch.ones(1, 6, 6)) for _ in range(16)]
        images, masks = (torch.stack(one) for one in zip(*pairs, strict=True))
        functional.binary_cross_entropy_with_logits(LAYER(images), masks)

    return facts_of(TurnedApart, step, calls=CALLS)


def at_once(image: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Draw once, and turn both."""
    angle, shift = DRAW.randrange(4), DRAW.randrange(5)
    image, mask = torch.rot90(image, angle, (1, 2)), torch.rot90(mask, angle, (1, 2))
    return image.roll(shift, 2), mask.roll(shift, 2)


@pytest.mark.parametrize(
    "pair",
    [
        lambda image, mask: (flip(image), flip(mask)),
        lambda image, mask: (flip_by_keywords(image), flip_by_keywords(mask)),
        lambda image, mask: (turn(flip(image)), turn(flip(mask))),
        lambda image, mask: (flip(image), mask.flip(-1) if DRAW.random() < 0.5 else mask),
    ],
    ids=["flip", "keywords", "several", "lines"],
)
def test_turns_of_two_draws_are_noticed(pair: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
    """Of one function, of several, and where each has a line of its own."""
    (found,) = seen(pair)

    assert found.num_calls == CALLS
    assert found.num_inputs > 1
    assert found.num_targets > 1


@pytest.mark.parametrize(
    "pair",
    [
        at_once,
        lambda image, mask: flip(torch.cat([image, mask])).split(1),
        lambda image, mask: (flip(image), mask),
        lambda image, mask: (image, flip(mask)),
        lambda image, mask: (image.flip(-1), mask.flip(-2)),
        lambda image, mask: (image.roll(1, -1), mask.roll(2, -1)),
        lambda image, mask: (image.roll(DRAW.randrange(5), -1), mask.roll(DRAW.randrange(5), -1)),
    ],
    ids=["once", "together", "inputs", "targets", "fixed", "next", "shifts"],
)
def test_what_may_be_meant_is_left_alone(pair: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
    """One draw for both, turns of one side, those that are fixed, and shifts on lines of their own."""
    assert seen(pair) == []


def test_a_target_of_a_network_is_no_mask() -> None:
    """It is computed from another view of the same image."""

    def step() -> None:
        views = [torch.stack([flip(torch.rand(1, 6, 6)) for _ in range(8)]) for _ in range(2)]
        functional.mse_loss(LAYER(views[0]), LAYER(views[1]).detach())

    assert facts_of(TurnedApart, step, calls=CALLS) == []
