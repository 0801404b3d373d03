"""Which advantages and targets count as attached, on calls made by hand."""

import msgspec

from gradinspect.checks.evidence.objectives.advantages import Attached, Chosen, attached_advantages, chosen_targets
from gradinspect.checks.facts.value_flow import Call, Read

NONE = frozenset[int]()  # of the leaves are held by an optimizer
ACTOR, CRITIC = Read(leaf=0, is_live=True), Read(leaf=1, is_live=True)


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


def policy_loss(
    *, value: Read, critic: Read = CRITIC, subtrahend: Read | None = None
) -> tuple[list[Call], dict[int, str]]:
    """Make the calls of a loss of a policy, and the line of its log-probability."""
    calls = [
        Call(op="torch.nn.functional.linear", reads=(Read(), ACTOR)),
        Call(op="torch.Tensor.sub", reads=(live(0),)),  # log_prob of some distribution
        Call(op="torch.nn.functional.linear", reads=(Read(), critic)),
        Call(op="torch.Tensor.squeeze", reads=(live(2),)),
        Call(op="torch.Tensor.sub", reads=(subtrahend or Read(), value)),
        Call(op="torch.Tensor.mul", reads=(live(1), Read(call=4, is_live=value.is_live))),
        Call(op="torch.Tensor.mean", reads=(live(5),)),
        Call(op="torch.Tensor.neg", reads=(live(6),)),
    ]
    return calls, {1: "log_prob = policy.log_prob(action)"}


def found(calls: list[Call], lines: dict[int, str]) -> list[Attached]:
    """Look for attached advantages behind the last call."""
    return list(attached_advantages(calls, live(len(calls) - 1), lambda number: lines.get(number, "")))


def test_a_difference_with_a_graph_to_another_network_is_attached() -> None:
    """With the call that computed it, the log-probability and the product."""
    assert found(*policy_loss(value=live(3))) == [Attached(4, 1, 5)]


def test_an_estimate_may_be_made_on_the_line_of_the_log_probability() -> None:
    """As where `act()` returns both; that of another line is a log-probability itself."""
    calls, lines = policy_loss(value=live(3))
    line = "return policy.log_prob(action), self.critic(state).squeeze(-1)"

    assert found(calls, {1: line, 3: line}) == [Attached(4, 1, 5)]
    assert not found(calls, {**lines, 3: "other = policy.log_prob(reference)"})


def test_the_steps_of_a_rollout_may_be_stacked() -> None:
    """The log-probabilities of its actions, and the estimates."""
    calls, lines = policy_loss(value=live(3))
    stacks = [Call(op="torch.stack", reads=(live(1),)), Call(op="torch.stack", reads=(live(3),))]
    difference, product, mean, loss = calls[4:]
    calls = [
        *calls[:4], *stacks, msgspec.structs.replace(difference, reads=(Read(), live(5))),
        msgspec.structs.replace(product, reads=(live(4), live(6))), msgspec.structs.replace(mean, reads=(live(7),)),
        msgspec.structs.replace(loss, reads=(live(8),)),
    ]  # fmt: skip

    assert found(calls, lines) == [Attached(6, 1, 7)]


def test_other_factors_are_not() -> None:
    """One that was detached, one of the same parameters, one that is no difference from a constant."""
    assert not found(*policy_loss(value=Read(call=3)))
    assert not found(*policy_loss(value=live(3), critic=ACTOR))
    assert not found(*policy_loss(value=live(3), subtrahend=live(2)))


def test_a_product_without_a_log_probability_is_nothing() -> None:
    """A loss may have any weights."""
    calls, _ = policy_loss(value=live(3))

    assert not found(calls, {})


def q_learning(*, choice: str = "amax", following: Read = ACTOR, best: Read | None = None) -> list[Call]:
    """Make the calls of a step of Q-learning, whose error is squared by hand."""
    return [
        Call(op="torch.nn.functional.linear", reads=(Read(), ACTOR)),
        Call(op="torch.nn.functional.linear", reads=(Read(), following)),
        Call(op=f"torch.Tensor.{choice}", reads=(live(1),)),
        Call(op="torch.Tensor.mul", reads=(best or live(2),)),
        Call(op="torch.Tensor.add", reads=(Read(), Read(call=3, is_live=(best or live(2)).is_live))),
        Call(op="torch.Tensor.sub", reads=(live(0), Read(call=4, is_live=(best or live(2)).is_live))),
        Call(op="torch.Tensor.pow", reads=(live(5),)),
        Call(op="torch.Tensor.mean", reads=(live(6),)),
    ]


def test_the_best_of_the_networks_own_values_is_a_target() -> None:
    """With the call that chose it, the target and the difference."""
    assert list(chosen_targets(q_learning(), live(7), NONE.__contains__)) == [Chosen(2, 4, 5)]


def test_other_targets_are_not_reported() -> None:
    """What was not chosen, what was detached, and what is of another network."""
    assert not list(chosen_targets(q_learning(choice="tanh"), live(7), NONE.__contains__))
    assert not list(chosen_targets(q_learning(best=Read(call=2)), live(7), NONE.__contains__))
    assert not list(chosen_targets(q_learning(following=CRITIC), live(7), NONE.__contains__))


def test_a_copy_of_the_network_counts_as_the_network() -> None:
    """Its leaf was made of that of the network, if an optimizer holds it: else its gradient moves nothing."""
    calls = q_learning(following=Read(call=8, leaf=1, is_live=True))
    calls.append(Call(op="torch.Tensor.detach", reads=(ACTOR,), cause="detach"))

    assert list(chosen_targets(calls, live(7), {1}.__contains__)) == [Chosen(2, 4, 5)]
    assert not list(chosen_targets(calls, live(7), NONE.__contains__))
