"""Targets that are thousands of times as large as what the model returns."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import FarTargets
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

FAR = Rule(
    code="GI344",
    title="the targets are far from what the output can reach",
    summary="The mean of the targets is in the thousands, and the output stays near 0 however many steps are made.",
    explanation="Layers begin with outputs around 0, and the step of an optimizer such as Adam has about the size of "
    "the learning rate, however large the loss is. Targets in watts, cents or prices are out of reach then, and what "
    "the loss shows is their size alone. Beside another term, such as a cross-entropy, a regression of this size "
    "decides every step. Reported where the mean of the targets is 1,000 or more, the output has come to less than 5% "
    "of it in each of 30 calls or more, and at its pace would take 50 times as many to come to it.",
    change="""\
  import torch
  from torch import nn

  x = torch.rand(256, 4)
  price = 200_000 + 50_000 * x[:, :1]
  model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
  optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
+ mean, std = price.mean(), price.std()  # of the training data
  for _ in range(40):
      optimizer.zero_grad()
-     loss = nn.functional.mse_loss(model(x), price)
+     loss = nn.functional.mse_loss(model(x), (price - mean) / std)
      loss.backward()
      optimizer.step()
""",
    remedy="Compare the output with scaled targets, and scale back what it predicts.",
)


def far_findings(fact: FarTargets) -> Iterator[Finding]:
    """Report how far the output has come."""
    used = line_of(fact.used)
    yield FAR.finding(
        text=f"The targets at {used} are {fact.target:,.0f} on average, and the output of the model {fact.first:.3g} "
        f"in the first call and {fact.last:.3g} after {fact.num_calls} calls. At this pace it does not come near them.",
        places=(*place_of("targets", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=f"At {used}, compare the output with (target - mean) / std, where mean and std are those of the targets "
        "of the training data. Of what it predicts later, take output * std + mean.",
    )


JUDGE = Judge(FarTargets, far_findings)
