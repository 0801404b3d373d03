"""What is held instead of saved tensors: gradients stay what they are, or nearly, and weights stay where they are."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody does

from gradinspect.analyses.planning.changes import Autocast, HalfSaves, Offload
from gradinspect.analyses.planning.code import applied_code
from gradinspect.analyses.planning.trial import RealSteps, compare
from gradinspect.observers.planning.gradient_digests import digests_of

PATHS = ("0", "1")
OFFLOAD = Offload(root=0, paths=PATHS, class_name="Mixer", num_alike=2)
HALF = HalfSaves(root=0, paths=PATHS, class_name="Mixer", num_alike=2)


class Mixer(nn.Module):
    """Has what is hard to hold: views, an expanded mask, a change in place, statistics, channels last, dropout."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.qkv, self.drop = nn.Linear(8, 24), nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix places, as attention does."""
        y = F.relu_(self.norm(self.convolution(x))).flatten(2).transpose(1, 2)
        query, key, value = self.qkv(y).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        mask = torch.ones(1, 1, 1, y.shape[1]).expand(len(x), 2, y.shape[1], -1)
        mixed = self.drop(F.scaled_dot_product_attention(query, key, value, mask)).transpose(1, 2).flatten(2)
        return x + (mixed.exp() * mask[:, 0].mean()).transpose(1, 2).view_as(x)


def gradients(change: Offload | HalfSaves | None, *, autocast: bool = False) -> list[torch.Tensor]:
    """Train one step, with what the modules save held in another way."""
    torch.manual_seed(0)
    model = nn.Sequential(Mixer(), Mixer()).to(memory_format=torch.channels_last)
    x = torch.randn(3, 8, 5, 5).to(memory_format=torch.channels_last)
    if change is not None:
        exec(applied_code([change], "cpu"), {"model": model})  # noqa: S102  # what is printed
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = model(x).square().mean()
    loss.backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("autocast", [False, True])
def test_offloading_keeps_every_bit(autocast: bool) -> None:  # a parameter of the test
    """Strides are kept, so that kernels compute as before."""
    plain, offloaded = gradients(None, autocast=autocast), gradients(OFFLOAD, autocast=autocast)

    assert all(map(torch.equal, plain, offloaded))


def steps(found: list[torch.Tensor]) -> RealSteps:
    """Make of some gradients what a run is compared by."""
    leaves = [torch.zeros_like(gradient) for gradient in found]
    for leaf, gradient in zip(leaves, found, strict=True):
        leaf.grad = gradient
    return RealSteps(seconds=(), gradients=(digests_of(leaves),))


def test_half_precision_changes_gradients_by_what_is_said() -> None:
    """The estimate from digests is near the norm of the difference."""
    plain, halved = gradients(None), gradients(HALF)
    whole, other = (torch.cat([gradient.flatten() for gradient in found]).double() for found in (plain, halved))
    number, num_different, difference = compare(steps(plain).gradients, steps(halved).gradients)

    assert number == len(plain)
    assert num_different > 0
    assert difference == pytest.approx(float((whole - other).norm() / whole.norm()), rel=0.3)
    assert 0 < difference < 0.02


@pytest.mark.parametrize("change", [OFFLOAD, HALF])
def test_weights_stay_and_what_two_nodes_save_is_copied_once(change: Offload | HalfSaves) -> None:
    """A tensor that is multiplied by a weight and squared has one copy."""

    class Both(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + x.square()

    model = nn.Sequential(Both(4, 4), Both(4, 4))
    exec(applied_code([change], "cpu"), {"model": model})  # noqa: S102  # what is printed
    output: Any = model(torch.randn(6, 4))
    product, square = (node for node, _ in output.grad_fn.next_functions)

    assert product._raw_saved_mat1.data[1] is square._raw_saved_self.data[1]
    assert product._raw_saved_mat2.data[0] is None


def autocast_linears(*paths: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result and a gradient of two layers, some parts of which run under autocast."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    if paths:
        change = Autocast(root=0, paths=paths, class_name="Linear", num_alike=2)
        exec(applied_code([change], "cpu"), {"model": model})  # noqa: S102  # what is printed
    result = model(torch.randn(32, 64))
    result.square().mean().backward()
    gradient = model[0].weight.grad
    assert gradient is not None
    return result.detach(), gradient


def test_autocast_gives_what_follows_the_dtype_that_it_expects() -> None:
    """The layers after a module that runs under autocast are not; and one without parameters stays as it is."""
    result, gradient = autocast_linears()
    near, close = autocast_linears("0", "1")

    assert near.dtype is result.dtype
    assert not torch.equal(result, near)
    assert torch.allclose(result, near, atol=0.05)
    assert 0 < (close - gradient).norm() < 0.05 * gradient.norm()
