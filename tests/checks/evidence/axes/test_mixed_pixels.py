"""Images whose values are in another order than their shape says."""

import ast
from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn.functional import interpolate

from gradinspect.checks.evidence.axes import mixed_pixels
from gradinspect.checks.facts.axes import MixedPixels, MovedByView

CALLS = mixed_pixels.LEAST_CALLS
LAYER = nn.Conv2d(3, 2, 3)


def pictures() -> Tensor:
    """Draw some that are smooth, and of several colors."""
    return interpolate(torch.rand(8, 3, 6, 6), (24, 32), mode="bilinear")


def mixed(images: Tensor) -> Tensor:
    """Reshape images whose channels come last, by NumPy."""
    return torch.from_numpy(images.permute(0, 2, 3, 1).contiguous().numpy().reshape(images.shape))


def stripes(period: int) -> Tensor:
    """Draw a diagonal texture that repeats itself, with noise."""
    places = torch.arange(24)[:, None] + torch.arange(32)
    return ((places % period) == 0).float().expand(8, 3, 24, 32) + 0.1 * torch.rand(8, 3, 24, 32)


@pytest.mark.parametrize(
    "draw",
    [pictures, lambda: pictures() + 0.1 * torch.randn(8, 3, 24, 32), lambda: pictures()[..., :30]],
    ids=["smooth", "noisy", "width"],
)
def test_channels_that_were_not_moved_show_in_the_values(draw: Callable[[], Tensor]) -> None:
    """Whatever is added to them, and whether or not the width is a multiple of three."""
    (found,) = facts_of(MixedPixels, lambda: LAYER(mixed(draw())), calls=CALLS)

    assert found.shape[0] == 3
    assert facts_of(MixedPixels, lambda: LAYER(draw()), calls=CALLS) == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(8, 3, 24, 32),
        lambda: torch.ones(8, 3, 24, 32),
        lambda: stripes(3),
        lambda: stripes(4),
        lambda: mixed(pictures())[..., :12],
    ],
    ids=["noise", "constant", "texture", "other_texture", "small"],
)
def test_what_shows_no_order_is_left_alone(draw: Callable[[], Tensor]) -> None:
    """Noise and textures, also one that repeats itself after three pixels."""
    assert facts_of(MixedPixels, lambda: LAYER(draw()), calls=CALLS) == []


def test_a_view_of_torch_is_named_by_itself() -> None:
    """Its line is known, so that one finding is enough."""

    def step() -> None:
        images = pictures().permute(0, 2, 3, 1).contiguous()
        LAYER(images.reshape(8, 3, 24, 32))

    assert facts_of(MixedPixels, step, calls=CALLS) == []
    assert len(facts_of(MovedByView, step, calls=CALLS)) == 1


def test_an_evaluation_of_the_same_images_is_no_finding_of_its_own() -> None:
    """The first line that gives them to a convolution is named."""

    def step() -> None:
        images = mixed(pictures())
        LAYER(images)
        LAYER(images)

    assert len(facts_of(MixedPixels, step, calls=CALLS)) == 1


@pytest.mark.parametrize(
    ("written", "count"),
    [("x.reshape(c, h, w)", 3), ("x.view((c, h, w))", 3), ("x.reshape(-1)", 1), ("x.view([2, 3])", 2)],
)
def test_the_lengths_of_a_shape_are_counted(written: str, count: int) -> None:
    """Given one by one or together."""
    (statement,) = ast.parse(written).body

    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert mixed_pixels._num_lengths(statement.value) == count
