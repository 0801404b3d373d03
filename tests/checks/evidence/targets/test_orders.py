"""Which inputs and targets are shuffled apart."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from gradinspect.checks.facts.targets import TwoOrders

LAYER = nn.Linear(4, 2)
X, Y = torch.randn(20, 4), torch.arange(20) % 2


def loss(x: Tensor, y: Tensor) -> Tensor:
    """Compare scores of x with y."""
    return functional.cross_entropy(LAYER(x), y)


def together() -> Tensor:
    """Put both into one order."""
    order = torch.randperm(20)
    return loss(X[order], Y[order])


def mixed() -> Tensor:
    """Mix examples, each of which is there in its own place as well."""
    order, other = torch.randperm(20), torch.randperm(20)
    return loss(X + X[order] + X[other], Y[other])


@pytest.mark.parametrize(
    ("step", "lengths"),
    [
        (lambda: loss(X[torch.randperm(20)], Y[torch.randperm(20)]), [20]),
        (together, []),
        (mixed, []),
        (lambda: loss(X, Y[torch.randperm(20)]), []),
        (lambda: loss(X[torch.randperm(20)][:, torch.randperm(4)], Y[torch.randperm(20)]), []),
        (lambda: loss(X[:, torch.randperm(4)], Y[torch.randperm(20)]), []),
    ],
)
def test_orders_that_were_drawn_apart(step: Callable[[], object], lengths: list[int]) -> None:
    """One on each side, of one length."""
    assert [one.length for one in facts_of(TwoOrders, step)] == lengths


def batches(*, seeds: tuple[int, int] = (0, 1), shuffles: bool = True) -> list[tuple[Tensor, Tensor]]:
    """Draw batches of inputs and of targets from two loaders."""
    first, second = (torch.Generator().manual_seed(seed) for seed in seeds)
    inputs = DataLoader(TensorDataset(X), batch_size=10, shuffle=shuffles, generator=first)
    targets = DataLoader(TensorDataset(Y), batch_size=10, shuffle=shuffles, generator=second)
    return [(x, y) for (x,), (y,) in zip(inputs, targets, strict=True)]


def of_loaders(compare: Callable[[Tensor, Tensor], object], **options: object) -> int:
    """Count the findings of what compares batches of two loaders."""

    def step() -> None:
        for x, y in batches(**options):  # type: ignore[arg-type]
            compare(x, y)

    found = facts_of(TwoOrders, step)
    assert all(one.are_loaders and one.length == 20 for one in found)
    return len(found)


def test_two_loaders_shuffle_apart() -> None:
    """Also where a difference is the loss; one seed gives one order."""
    assert of_loaders(loss) == 1
    assert of_loaders(lambda x, y: LAYER(x)[:, 0] - y.float() / 2) == 1
    assert of_loaders(loss, seeds=(3, 3)) == 0
    assert of_loaders(loss, shuffles=False) == 0
    assert of_loaders(lambda x, y: functional.mse_loss(LAYER(x)[:, 0], torch.outer(y.float(), X[:, 0]).sum(1))) == 0


def test_one_loader_of_pairs_has_one_order() -> None:
    """And a difference of permuted values is no loss of pairs."""
    pairs = DataLoader(TensorDataset(X, Y), batch_size=10, shuffle=True)

    assert not facts_of(TwoOrders, lambda: [loss(x, y) for x, y in pairs])
    assert not facts_of(TwoOrders, lambda: LAYER(X[torch.randperm(20)]) - X[torch.randperm(20)][:, :2])


def test_what_orders_both_sides_is_no_order_of_one() -> None:
    """Data that was shuffled apart stays apart where rows of both are taken together."""
    x, y = X[torch.randperm(20)], Y[torch.randperm(20)]

    def step(x: Tensor, y: Tensor) -> object:
        rows = torch.randperm(20)
        return loss(x[rows], y[rows])

    def apart() -> object:
        return step(X[torch.randperm(20)], Y[torch.randperm(20)])

    assert len(facts_of(TwoOrders, apart)) == 1
    assert not facts_of(TwoOrders, lambda: step(x, y))  # shuffled before anything was watched
