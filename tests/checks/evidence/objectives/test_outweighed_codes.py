"""In which losses the divergence of a code counts more than the code can win."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from gradinspect.checks.facts.objectives import OutweighedCode

F = nn.functional
with torch.random.fork_rng():  # the error has to be below one
    torch.manual_seed(0)
    ENCODER, DECODER, OTHER = nn.Linear(40, 12), nn.Linear(6, 40), nn.Linear(40, 12)
    X = torch.rand(8, 40)
Divergence = Callable[[Tensor, Tensor], Tensor]


def _by_log_var(mean: Tensor, log_var: Tensor) -> Tensor:
    return 1 + log_var - mean.pow(2) - log_var.exp()


def _by_deviation(mean: Tensor, log_var: Tensor) -> Tensor:
    deviation = (log_var / 2).exp()
    return mean**2 + deviation**2 - 2 * torch.log(deviation) - 1


def _of_distributions(mean: Tensor, log_var: Tensor) -> Tensor:
    return kl_divergence(Normal(mean, (log_var / 2).exp()), Normal(torch.zeros(6), torch.ones(6)))


def _loss(divergence: Divergence, error: Callable[[Tensor, Tensor], Tensor] = F.mse_loss) -> Tensor:
    mean, log_var = ENCODER(X).chunk(2, 1)
    z = mean + torch.randn_like(mean) * (log_var / 2).exp()
    return error(DECODER(z), X) + divergence(mean, log_var)


def _found(divergence: Divergence, error: Callable[[Tensor, Tensor], Tensor] = F.mse_loss) -> list[OutweighedCode]:
    return facts_of(OutweighedCode, lambda: _loss(divergence, error))


@pytest.mark.parametrize(
    ("divergence", "weight"),
    [
        (lambda m, v: -0.5 * torch.sum(_by_log_var(m, v)) / 8, 1.0),
        (lambda m, v: (-0.5 * _by_log_var(m, v)).sum(1).mean(), 1.0),
        (lambda m, v: torch.mean(-0.5 * torch.sum(_by_log_var(m, v), dim=1), dim=0), 1.0),
        (lambda m, v: 0.5 * torch.sum(_by_deviation(m, v), 1).mean(), 1.0),
        (lambda m, v: _of_distributions(m, v).sum(-1).mean(), 1.0),
        (lambda m, v: 3 * _of_distributions(m, v).sum(-1).mean(), 3.0),
        (lambda m, v: -0.5 * _by_log_var(m, v).mean() * 6, 1.0),
    ],
)
def test_a_sum_over_the_code_beside_a_mean_over_elements(divergence: Divergence, weight: float) -> None:
    """What is left for the code is the first error, by the weight of one example's divergence."""
    torch.manual_seed(0)
    (found,) = _found(divergence)
    torch.manual_seed(0)
    errors = [_loss(lambda m, _v: 0 * m.sum()).item() for _ in range(6)]

    assert (found.elements, found.num_calls) == (40, 6)
    assert found.nats == pytest.approx(max(errors) / weight, rel=1e-5)


@pytest.mark.parametrize("error", [F.binary_cross_entropy_with_logits, lambda out, x: (out - x).abs().mean()])
def test_any_mean_is_an_error(error: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Also one that the program writes itself."""
    assert len(_found(lambda m, v: -0.5 * torch.sum(_by_log_var(m, v)) / 8, error)) == 1


@pytest.mark.parametrize(
    "divergence",
    [
        lambda m, v: -0.5 * torch.sum(_by_log_var(m, v)) / 8 / 40,  # one likelihood
        lambda m, v: 0.01 * _of_distributions(m, v).sum(-1).mean(),
        lambda m, v: (-0.5 * _by_log_var(m, v)).sum(1).clamp(min=3.0).mean(),  # nats that are free
        lambda m, v: -0.5 * torch.sum(_by_log_var(m, v)) / 8 * torch.tensor(0.5),  # a weight that is not known
        lambda m, _v: m.square().sum(1).mean(),  # a penalty
        lambda m, v: (m - v).pow(2).sum(1).mean(),
        lambda m, v: -0.5 * _by_log_var(*OTHER(X).chunk(2, 1)).sum(1).mean() + 0 * (m + v).sum(),  # of another code
        lambda m, v: ((m - X[:, :6]) ** 2 * (-v).exp() + v).sum(1).mean() * 0,  # a likelihood, with the weight 0
    ],
)
def test_what_a_code_may_cost(divergence: Divergence) -> None:
    """Nothing is said where it is worth it, or where it is not known to be a divergence of this code."""
    assert _found(divergence) == []


def test_an_error_that_is_summed_over_the_elements_is_worth_a_code() -> None:
    """As is one that is large."""

    def divergence(mean: Tensor, log_var: Tensor) -> Tensor:
        return -0.5 * torch.sum(_by_log_var(mean, log_var)) / 8

    assert _found(divergence, lambda out, x: F.mse_loss(out, x, reduction="sum") / 8) == []
    assert _found(divergence, lambda out, x: F.mse_loss(out, 9 * x)) == []


def test_without_a_draw_there_is_no_code() -> None:
    """A layer may be held near a normal distribution."""

    def step() -> Tensor:
        mean, log_var = ENCODER(X).chunk(2, 1)
        return F.mse_loss(DECODER(mean + log_var), X) - 0.5 * _by_log_var(mean, log_var).sum(1).mean()

    assert facts_of(OutweighedCode, step) == []
