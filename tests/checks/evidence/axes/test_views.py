"""Which views were to move an axis."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.axes import FlattenedApart, MovedByView

ROWS = nn.Parameter(torch.randn(4, 6, 10))  # batch, length, two heads of five
HEADS = nn.Parameter(torch.randn(4, 2, 6, 5))
IMAGES = torch.randn(4, 8, 6, 3)


@pytest.mark.parametrize(
    ("x", "view", "kind"),
    [
        (ROWS, lambda x: x.view(4, 2, 6, 5), "split"),
        (ROWS, lambda x: x.reshape(4, 2, 6, -1), "split"),
        (ROWS, lambda x: x.reshape((4, 2, 6, 5)), "split"),
        (HEADS, lambda x: x.reshape(4, 6, 10), "merged"),
        (IMAGES, lambda x: x.view(-1, 3, 8, 6), "moved"),
        (ROWS, lambda x: x.view(6, 4, 10), "moved"),
    ],
)
def test_a_view_that_was_to_move_an_axis(x: Tensor, view: Callable[[Tensor], Tensor], kind: str) -> None:
    """Heads that are split off or merged, and the same axes in another order, from the second call on."""
    (found,) = facts_of(MovedByView, lambda: view(x))

    assert (found.kind, found.before, found.num_calls) == (kind, tuple(x.shape), 6)
    assert not facts_of(MovedByView, lambda: view(x), calls=1)


@pytest.mark.parametrize(
    ("x", "view"),
    [
        (ROWS, lambda x: x.view(4, 6, 2, 5).transpose(1, 2)),
        (HEADS, lambda x: x.transpose(1, 2).reshape(4, 6, 10)),
        (IMAGES, lambda x: x.permute(0, 3, 1, 2).reshape(4, 3, 8, 6)),
        (ROWS, lambda x: x.view(24, 10)),
        (ROWS, lambda x: x.view(1, 4, 6, 10)),
        (torch.randn(4, 2, 3, 3), lambda x: x.view(4, 3, 6)),  # as long as wide, so that nobody knows
        (torch.randn(4, 6), lambda x: x.view(6, 4)),
    ],
)
def test_a_view_that_is_meant(x: Tensor, view: Callable[[Tensor], Tensor]) -> None:
    """Axes that are split, merged or moved by what moves them; and shapes that do not tell."""
    assert not facts_of(MovedByView, lambda: view(x))


@pytest.mark.parametrize(
    ("images", "convolved", "count"),
    [
        (IMAGES, lambda x: x.view(4, 3, 8, 6)[torch.tensor([2, 0])], 1),
        (IMAGES, lambda x: (x.reshape(-1, 3, 8, 6).float() / 255 - 0.5)[:2].clone(), 1),
        (IMAGES, lambda x: torch.stack([row * 2 for row in x.view(4, 3, 8, 6)[:3]]), 1),
        (IMAGES, lambda x: x.permute(0, 3, 1, 2)[:2], 0),
        (torch.randn(4, 144), lambda x: x.view(4, 3, 8, 6), 0),  # rows of a file
        (torch.randn(4, 6, 8, 3), lambda x: x.view(4, 8, 3, 6).permute(0, 2, 1, 3), 0),  # axes that are counted down
    ],
)
def test_images_that_were_turned_once(images: Tensor, convolved: Callable[[Tensor], Tensor], count: int) -> None:
    """One call is enough where a convolution is given what it made, or some of its rows."""
    layer = nn.Conv2d(3, 2, 3)

    assert len(facts_of(MovedByView, lambda: layer(convolved(images)), calls=1)) == count


def test_a_line_with_other_shapes_is_left_alone() -> None:
    """It was so by chance in the calls before."""
    shapes = iter([(4, 2, 6, 5), (4, 2, 6, 5), (24, 10)])

    assert not facts_of(MovedByView, lambda: ROWS.view(next(shapes)), calls=3)


def test_scores_of_a_loss_are_known_to_another_rule() -> None:
    """It looks at the graph."""
    target = torch.zeros(4, 6, dtype=torch.long)

    assert not facts_of(MovedByView, lambda: functional.cross_entropy(ROWS.view(4, 10, 6), target))


def test_sides_of_a_loss_that_were_flattened_in_opposite_order() -> None:
    """Whatever casts come after it; not if one of them was transposed before."""
    scores = nn.Parameter(torch.randn(6, 4, 3))  # time first
    labels = torch.randint(3, (4, 6))

    def loss(target: Tensor) -> Tensor:
        return functional.cross_entropy(scores.view(-1, 3).float(), target.long())

    (found,) = facts_of(FlattenedApart, lambda: loss(labels.view(-1)))

    assert (found.first, found.second) == ((6, 4), (4, 6))
    assert not facts_of(FlattenedApart, lambda: loss(labels.t().reshape(-1)))
    assert not facts_of(FlattenedApart, lambda: loss(torch.randint(3, (24,))))
