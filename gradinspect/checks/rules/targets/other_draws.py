"""Scores of an action that was not taken."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import OtherDraw
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

DRAW = Rule(
    code="GI328",
    title="another draw is scored than the one that was taken",
    summary="log_prob() gets a sample of its own, while the reward is that of an earlier sample.",
    explanation="A policy learns from log_prob(action) times how good that action was. dist.log_prob(dist.sample()) "
    "draws once more: the score is that of an action that nobody took, and its reward is by chance. Reported where "
    "nothing but the score reads what was drawn, and another draw of the same probabilities went elsewhere.",
    change="""\
  import torch
  from torch import nn

  policy = nn.Linear(4, 2)
  for _ in range(4):
      logits = policy(torch.randn(16, 4))
      dist = torch.distributions.Categorical(logits=logits)
      action = dist.sample()
      reward = (action == 1).float() - 0.5
-     loss = -(dist.log_prob(dist.sample()) * reward).mean()
+     loss = -(dist.log_prob(action) * reward).mean()
      loss.backward()
""",
    remedy="Score the action that was taken.",
)


def draw_findings(fact: OtherDraw) -> Iterator[Finding]:
    """Report a draw that only its score reads."""
    yield DRAW.finding(
        text=f"In each of {fact.num_calls} calls, what {line_of(fact.drawn)} draws is read by its score alone, and "
        f"what {line_of(fact.taken)} draws of the same probabilities is used and has no score. So the loss has the "
        "score of one action and what came of another.",
        places=(
            *place_of("taken", fact.taken),
            *place_of("drawn", None if fact.drawn == fact.taken else fact.drawn),
            *place_of("scored", None if fact.scored in (fact.drawn, fact.taken) else fact.scored),
        ),
        remedy=f"At {line_of(fact.scored)}, score what {line_of(fact.taken)} draws.",
    )


JUDGE = Judge(OtherDraw, draw_findings)
