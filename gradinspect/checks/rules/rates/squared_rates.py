"""Functions for LambdaLR that return the learning rate."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

SQUARED = Rule(
    code="GI390",
    title="LambdaLR is given learning rates for factors",
    summary="What the function returns is multiplied with the learning rate of the optimizer: its square is used.",
    explanation="LambdaLR(optimizer, f) sets the learning rate to the one that the optimizer was made with, times "
    "f(epoch). A function that returns the learning rate itself, such as lr * 0.95**epoch, makes 0.0001 of 0.01, and "
    "training crawls. Reported if the largest factor is the learning rate itself, and does not grow any more. A "
    "warm-up that begins with a factor of that size is not reported, nor is a learning rate of a half or more.",
    change="""\
  import torch
  from torch import nn

  model, rate = nn.Linear(8, 4), 0.01
  optimizer = torch.optim.SGD(model.parameters(), lr=rate)
  scheduler = torch.optim.lr_scheduler.LambdaLR(
-     optimizer, lambda epoch: rate * 0.9**epoch
+     optimizer, lambda epoch: 0.9**epoch
  )
  for _ in range(4):
      loss = model(torch.randn(5, 8)).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      scheduler.step()
""",
    remedy="Return what the learning rate is to be multiplied with: 1.0 means no change.",
)


def squared_findings(fact: OptimizerMisuse) -> Iterator[Finding]:
    """Say what the learning rate is, and what it was to be."""
    if fact.kind != "squared":
        return
    where = "of LambdaLR" if fact.function is None else f"at {line_of(fact.function)}"
    yield SQUARED.finding(
        text=f"The largest factor that the function {where} returns to LambdaLR is {fact.squared:g}, the learning rate "
        f"of {fact.optimizer} itself. The two are multiplied: {fact.optimizer} steps with {fact.squared**2:.3g} at "
        "most.",
        places=(
            *place_of("function", fact.function), *place_of("optimizer", fact.created),
            *place_of("step", fact.step), *place_of("scheduler", fact.scheduled),
        ),
        remedy=f"In the function {where}, divide by {fact.squared:g}: 1.0 means no change.",
    )  # fmt: skip


JUDGE = Judge(OptimizerMisuse, squared_findings)
