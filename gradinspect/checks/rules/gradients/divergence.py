"""Losses that each step of the optimizer makes larger, until they are not finite."""

from collections.abc import Iterator

from gradinspect.checks.facts.backward_calls import DivergingLoss
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

DIVERGENCE = Rule(
    code="GI503",
    title="the loss grows with each step, until it is NaN or Inf",
    summary="Each step of the optimizer goes further past its goal than the one before.",
    explanation="A gradient says in which direction the loss falls, not how far. Where the learning rate is too large "
    "for the curvature of the loss, a step lands on the other side of the valley, higher up than before, and the next "
    "gradient is larger still. Inputs and targets that are not scaled have the same effect, as the curvature grows "
    "with their square. Reported if the loss has grown a million times, in each of the last calls of backward.",
    change="""\
  import torch
  from torch import nn

  torch.manual_seed(0)
  model = nn.Linear(3, 1)
- optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
+ optimizer = torch.optim.SGD(model.parameters(), lr=0.005)
  x = torch.rand(64, 3) * 5
  for _ in range(30):
      loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Use a smaller learning rate, or scale inputs and targets to about one.",
    explains_gradients=True,
    is_nonfinite=True,
)


def divergence_findings(fact: DivergingLoss) -> Iterator[Finding]:
    """Say how the loss has grown, and which optimizer has made the steps."""
    step = fact.step
    optimizer = "the optimizer" if step is None else step.optimizer
    rate = "" if step is None or step.rate is None else f", whose learning rate is {step.rate:g},"
    than = "" if step is None or step.rate is None else f" than {step.rate:g}"
    where = "" if step is None or step.created is None else f" at {line_of(step.created)}"
    yield DIVERGENCE.finding(
        text=f"In {fact.num_calls} calls of backward in a row the loss has grown each time, from {fact.first:.3g} to "
        f"{fact.last:.3g}: each step of {optimizer}{rate} goes further past its goal than the one before.",
        places=(
            *place_of("optimizer", None if step is None else step.created),
            *place_of("step", None if step is None else step.line),
            *place_of("backward", fact.backward),
        ),
        remedy=f"Use a smaller learning rate{than}{where}, or scale inputs and targets to about one.",
    )  # fmt: skip


JUDGE = Judge(DivergingLoss, divergence_findings)
