"""Other roundings: how far they move results, and what they leave."""

import pytest
import torch
from torch.nn import functional

from gradinspect.observers.gradients.rounding import OtherRoundings


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex64])
def test_a_result_moves_by_up_to_one_unit(dtype: torch.dtype) -> None:
    """Some of its elements do."""
    one, other = torch.rand(1000).to(dtype) + 1, torch.rand(1000).to(dtype) + 1
    with OtherRoundings(1):
        moved = one * other

    off = ((moved - one * other).abs() / (one * other).abs()).max().item()
    assert 0 < off <= 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize(
    "exact",
    [
        lambda x: x[3:7], lambda x: x.flip(0), lambda x: x.clone(), torch.relu, lambda x: x.max(),
        lambda x: torch.where(x > 0, x, 0.0), lambda x: torch.cat([x, x]), lambda x: x.detach(), lambda x: -x,
        lambda x: x.expand(3, 10), lambda x: x > 0, lambda x: x.argmax(),
    ],
)  # fmt: skip
def test_what_is_exact_is_left(exact: object) -> None:
    """Elements that are moved or selected, not computed."""
    x = torch.randn(10)
    expected = exact(x)  # type: ignore[operator]  # a function of a tensor
    with OtherRoundings(1):
        assert torch.equal(exact(x), expected)  # type: ignore[operator]  # the same


def test_zeros_without_memory_are_left() -> None:
    """torch.func.grad makes some of a gradient that is no tensor yet, and nobody can write into them."""
    leaf = torch.randn(2, 3, requires_grad=True)

    def written(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, 0] += x[:, 2].abs()
        return y.sum()

    with OtherRoundings(1):
        (torch.func.grad(written)(leaf) * leaf).square().sum().backward()

    assert leaf.grad is not None
    assert torch.isfinite(leaf.grad).all()


def test_an_operator_of_the_program_runs_once() -> None:
    """On its own arguments: it may write into them without saying so."""
    library = torch.library.Library("rounded", "DEF")
    library.define("count(Tensor seen, Tensor x) -> Tensor")
    library.impl("count", lambda seen, x: seen.add_(x.sum(0)).clone(), "CompositeExplicitAutograd")
    seen, x = torch.zeros(5), torch.rand(30, 5)
    with OtherRoundings(1):
        torch.ops.rounded.count(seen, x)

    torch.testing.assert_close(seen, x.sum(0))


def test_random_numbers_and_their_generator_are_left() -> None:
    """Dropout drops the same elements, and what is drawn next is the same."""
    layer = torch.nn.Dropout(0.5)
    torch.manual_seed(0)
    expected, then = layer(torch.ones(100)), torch.rand(3)
    torch.manual_seed(0)
    with OtherRoundings(1):
        assert torch.equal(layer(torch.ones(100)) > 0, expected > 0)
    assert torch.equal(torch.rand(3), then)


def test_roundings_differ_by_seed_and_repeat() -> None:
    """Two runs with one seed are equal."""
    x = torch.rand(100)

    def run(seed: int) -> torch.Tensor:
        with OtherRoundings(seed):
            return x * 3

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_running_statistics_are_updated_once() -> None:
    """An operator that writes into its arguments runs on copies of them first."""
    x = torch.randn(64, 5) + 1
    plain, moved = torch.nn.BatchNorm1d(5), torch.nn.BatchNorm1d(5)
    plain(x)
    with OtherRoundings(1):
        moved(x)

    assert moved.num_batches_tracked == plain.num_batches_tracked == 1
    assert torch.allclose(moved.running_mean, plain.running_mean, rtol=1e-4)
    assert not torch.equal(moved.running_mean, plain.running_mean)


def test_writes_stay_in_place() -> None:
    """The tensor that was written is moved, not another one."""
    x = torch.rand(50)
    expected = x * 2
    with OtherRoundings(1):
        assert x.mul_(2) is x
    assert not torch.equal(x, expected)
    assert torch.allclose(x, expected)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_far_off_as_float32_is_from_float64(seed: int) -> None:
    """A gradient with cancellation: float64 is the witness of how far rounding moves it."""
    torch.manual_seed(seed)
    x, w, y = torch.randn(256, 64), torch.randn(64, 10), torch.randint(10, (256,))

    def bias_gradient(dtype: torch.dtype) -> torch.Tensor:
        bias = torch.zeros(10, dtype=dtype, requires_grad=True)
        functional.cross_entropy(x.to(dtype) @ w.to(dtype) + bias, y).backward()
        assert bias.grad is not None
        return bias.grad.double()

    exact, plain = bias_gradient(torch.float64), bias_gradient(torch.float32)
    with OtherRoundings(seed + 1):
        moved = bias_gradient(torch.float32)

    true_error, measured = (plain - exact).norm().item(), (moved - plain).norm().item()
    assert true_error / 6 < measured < 1e-3 * exact.norm().item()
