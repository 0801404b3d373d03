"""Which products of a log-probability and a reward a loss has without a minus."""

import pytest

from gradinspect.checks.evidence.objectives.reward_signs import rewarded_losses
from gradinspect.checks.facts.value_flow import Call, Read

SCORED = "lp = dist.log_prob(a)"
_PARAMETER = Read(leaf=0, is_live=True)


def found(code: str, *more: tuple[str, str], op: str = "sub", scored: str = SCORED, turned: str = "") -> list[str]:
    """Multiply a log-probability by a reward, go on with other calls, and list the factors that are found."""
    calls = [
        Call("linear", (_PARAMETER,)),
        Call(op, (Read(call=0, is_live=True),)),
        Call("neg" if turned else "add", ()),
        Call("mul", (Read(call=1, is_live=True), Read(call=2))),
    ]
    lines = ["net(x)", scored, turned or "r + 1", code]
    for name, line in more:
        calls.append(Call(name, (Read(call=len(calls) - 1, is_live=True),)))
        lines.append(line)
    root = Read(call=len(calls) - 1, is_live=True)
    return [one.factor for one in rewarded_losses(calls, root, lines.__getitem__)]


def test_a_product_without_a_minus() -> None:
    """By the name of the factor; a minus on the way makes it right, and two make it wrong again."""
    mean, minus = ("mean", "x.mean()"), ("neg", "loss = -x")

    assert found("x = lp * reward", mean) == ["reward"]
    assert found("x = self.returns[0] * lp", mean) == ["self.returns[0]"]
    assert found("x = lp * reward", mean, minus) == []
    assert found("x = lp * reward", minus, mean, minus) == ["reward"]
    assert found("x = lp * cost", mean) == found("x = lp * w", mean) == []
    assert found("x = lp * reward", ("mul", "loss = -1 * x")) == []  # a number, which may be negative
    assert found("x = lp * reward", ("exp", "x.exp()")) == []


@pytest.mark.parametrize(
    ("scored", "op", "expected"),
    [
        ("lp = dist.log_prob(a)", "neg", ["reward"]),  # of a Bernoulli, which is computed so
        ("lp = -dist.log_prob(a)", "neg", []),
        ("lp = (-dist.log_prob(a)", "neg", []),  # a part of a statement
        ("lp = -dist.log_prob(a) + two.log_prob(b)", "neg", []),
        ("lp = dist.log_prob(a)", "squeeze", ["reward"]),
        ("lp = score(a)", "neg", []),
    ],
)
def test_a_minus_before_the_log_probability(scored: str, op: str, expected: list[str]) -> None:
    """One that the program writes counts, and one of the distribution itself does not."""
    assert found("x = lp * reward", op=op, scored=scored) == expected


@pytest.mark.parametrize(
    ("turned", "expected"),
    [
        ("reward = -reward", []),
        ("adv = value - returns", []),
        ("adv = returns - value", ["adv"]),
        ("adv = returns - returns.mean()", ["adv"]),
        ("reward = -(a - goal) ** 2", ["adv"]),
    ],
)
def test_a_reward_that_is_turned_around(turned: str, expected: list[str]) -> None:
    """A negated one is a cost, and what is subtracted from an estimate is one, too."""
    assert found("x = lp * adv", turned=turned) == expected


@pytest.mark.parametrize(
    ("steps", "last", "expected"),
    [
        (["sub", "exp"], "minimum", ["adv"]),
        (["sub", "exp", "clamp"], "mean", ["adv"]),
        (["rest", "exp"], "minimum", []),
        (["both", "exp"], "minimum", []),
        (["sub", "exp"], "neg", []),
        (["sub", "sigmoid"], "mean", []),
    ],
)
def test_a_ratio_to_an_earlier_policy(steps: list[str], last: str, expected: list[str]) -> None:
    """It grows with the log-probability that something was subtracted from, and shrinks with one that is subtracted."""
    calls, lines = [Call("sum", (_PARAMETER,))], [SCORED]
    for step in steps:
        live, other = Read(call=len(calls) - 1, is_live=True), Read()
        reads = {"sub": (live, other), "rest": (other, live), "both": (live, live)}.get(step, (live,))
        calls.append(Call("sub" if step in ("rest", "both") else step, reads))
        lines.append("ratio = (lp - before).exp()")
    for name, reads in (("mul", (Read(call=len(steps), is_live=True), Read())),
                        (last, (Read(call=len(steps) + 1, is_live=True),))):  # fmt: skip
        calls.append(Call(name, reads))
    lines += ["x = ratio * adv", "loss = x"]
    root = Read(call=len(calls) - 1, is_live=True)

    assert [one.factor for one in rewarded_losses(calls, root, lines.__getitem__)] == expected
