"""Losses whose sign is the wrong one."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import RewardMinimized
from gradinspect.checks.facts.targets import WrongSign
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

_LOGARITHMS = frozenset(("getitem", "gather", "squeeze"))
SIGN = Rule(
    code="GI327",
    title="each step makes the loss worse",
    summary="The whole loss is a loss function times a negative number, or a log-probability without its minus.",
    explanation="An optimizer makes the loss smaller. The negative of a cross entropy or of a squared error grows "
    "smaller as the error grows, and so does the logarithm of the probability of the right answer: a minus is missing, "
    "or there is one too many. The loss falls without end, and nothing raises. Reported where the whole loss is one "
    "such term, its sign was the wrong one in each call, all that it reaches are parameters, and no optimizer "
    "maximizes. Silent where the program also has a backward of another kind, as one with an adversary has. Also "
    "reported where a loss adds what log_prob() returned times what the program calls a reward, a return or an "
    "advantage, without a minus, or the ratio of PPO times that: the policy makes less likely what was rewarded.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 3)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(4):
      x = torch.randn(32, 8)
      y = x[:, :3].argmax(1)
      log_p = torch.log_softmax(model(x), 1)
-     loss = log_p[torch.arange(32), y].mean()
+     loss = -log_p[torch.arange(32), y].mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Change the sign of the loss.",
)


def sign_findings(fact: WrongSign) -> Iterator[Finding]:
    """Report a loss that grows worse."""
    where = line_of(fact.made or fact.backward)
    if fact.op in _LOGARITHMS:
        what = "the mean of log-probabilities that were selected, without a minus"
        effect = "makes what was selected less likely"
    else:
        what, effect = f"{fact.op} times a negative number", "makes the error larger"
    yield SIGN.finding(
        text=f"In each of {fact.num_calls} calls, the whole loss is {what}; the last one was {fact.value:.4g}. An "
        f"optimizer makes the loss smaller, which {effect}.",
        places=(
            *place_of("loss", fact.made),
            *place_of("backward", None if fact.backward == fact.made else fact.backward),
        ),
        remedy=f"Is what {where} computes to be minimized as it is? Otherwise change the sign of the loss.",
    )


def reward_findings(fact: RewardMinimized) -> Iterator[Finding]:
    """Report a policy that learns to avoid what is rewarded."""
    where = line_of(fact.used)
    score = "a ratio of probabilities" if fact.is_ratio else "a log-probability"
    remedy = f"Change the sign of the product at {where}: the loss of a policy is -log_prob * {fact.factor}."
    if fact.is_ratio:
        remedy = f"Change the sign of what {where} adds up: the loss of a policy is -mean(ratio * {fact.factor})."
    yield SIGN.finding(
        text=f"{fact.factor} is what the policy is to get more of, and the loss adds its product with {score} "
        f"({where}). An optimizer makes the loss smaller, so actions become less likely the larger {fact.factor} is.",
        places=(*place_of("loss", fact.used), *place_of("backward", fact.backward)),
        remedy=remedy,
        subjects=(fact.factor,),
    )


REWARDS = Judge(RewardMinimized, reward_findings)
JUDGE = Judge(WrongSign, sign_findings)
