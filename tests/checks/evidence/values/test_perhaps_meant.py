"""What is said of losses that may be meant as they are, on calls made by hand."""

import pytest

from gradinspect.checks.evidence.values.perhaps_meant import Bootstrap, bootstraps
from gradinspect.checks.facts.value_flow import Call, Read

WEIGHT = Read(leaf=0, is_live=True)


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


def q_learning(*, target: Read, leaf: Read = WEIGHT, reward: Read | None = None) -> list[Call]:
    """Make the calls of a step of Q-learning."""
    return [
        Call(op="torch.nn.functional.linear", reads=(Read(), WEIGHT)),
        Call(op="torch.nn.functional.linear", reads=(Read(), leaf)),
        Call(op="torch.Tensor.mul", reads=(target,)),
        Call(op="torch.Tensor.add", reads=(reward or Read(), Read(call=2, is_live=target.is_live))),
        Call(op="torch.nn.functional.mse_loss", reads=(live(0), Read(call=3, is_live=target.is_live))),
    ]


def test_a_target_with_a_gradient_to_the_same_parameters_is_named() -> None:
    """Where it was computed, and the loss."""
    assert list(bootstraps(q_learning(target=live(1)), live(4))) == [Bootstrap(3, 4)]


@pytest.mark.parametrize(
    "calls",
    [
        q_learning(target=Read(call=1)),
        q_learning(target=live(1), leaf=Read(leaf=7, is_live=True)),
        q_learning(target=live(1), reward=live(0)),
    ],
    ids=["detached", "of another network", "of two predictions"],
)
def test_other_targets_are_not(calls: list[Call]) -> None:
    """Nothing is said of them."""
    assert not list(bootstraps(calls, live(4)))


def test_a_prediction_without_its_graph_has_no_target() -> None:
    """Nor has a regression on nothing; what is found under a mean is found beside other losses."""
    calls = q_learning(target=live(1))
    swapped = [*calls[:4], Call(op="torch.nn.functional.mse_loss", reads=(Read(call=0), live(3)))]
    mean = [
        *calls, Call(op="torch.nn.functional.mse_loss", reads=(live(0),)), Call(op="torch.exp", reads=(live(0),)),
        Call(op="torch.stack", reads=(live(4), live(5), live(6))), Call(op="torch.Tensor.mean", reads=(live(7),)),
    ]  # fmt: skip

    assert not list(bootstraps(swapped, live(4)))
    assert list(bootstraps(mean, live(8))) == [Bootstrap(3, 4)]
