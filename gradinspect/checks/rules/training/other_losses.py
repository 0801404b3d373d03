"""Gradients of another loss that a step applies: those that the generator's backward left in the discriminator."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import GradientMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

OTHER_LOSS = Rule(
    code="GI370",
    title="gradients of another loss are applied",
    summary="An optimizer applies gradients that the backward for another optimizer has left.",
    explanation="The loss of a generator goes through the discriminator, and that of an actor through the critic, "
    "so its backward adds gradients there as well. They point the other way: they make the discriminator easier to "
    "fool. The discriminator's gradients must be cleared before its own backward, not only after its own step. So must "
    "a generator's, if the fake that the discriminator learns from was not detached. "
    "Losses that are added up over several backward calls are not reported, nor are parameters that several "
    "optimizers train, nor a trunk that learns from the losses of all heads.",
    change="""\
  import torch
  from torch import nn

  actor, critic = nn.Linear(4, 2), nn.Linear(2, 1)
  optimizer_a = torch.optim.SGD(actor.parameters(), lr=0.1)
  optimizer_c = torch.optim.SGD(critic.parameters(), lr=0.1)
  for _ in range(4):
      loss_c = (critic(torch.randn(8, 2)) - 1).square().mean()
+     optimizer_c.zero_grad()
      loss_c.backward()
      optimizer_c.step()
-     optimizer_c.zero_grad()  # too early
      optimizer_a.zero_grad()
      loss_a = -critic(actor(torch.randn(8, 4))).mean()
      loss_a.backward()
      optimizer_a.step()
""",
    remedy="Call zero_grad() of an optimizer right before the backward whose gradients it is to apply.",
)


def other_loss_findings(fact: GradientMisuse) -> Iterator[Finding]:
    """Report gradients that another loss has left."""
    if fact.kind != "other":
        return
    other, backward = line_of(fact.other), line_of(fact.backward)
    yield OTHER_LOSS.finding(
        text=f"backward at {other} is for another optimizer, but leaves gradients in what {fact.optimizer} holds too. "
        f"Nothing clears them before backward at {backward} adds to them, and {fact.optimizer} applies both.",
        places=(*place_of("other", fact.other), *place_of("backward", fact.backward), *place_of("step", fact.step)),
        remedy=f"Call {fact.optimizer}.zero_grad() right before {backward}.",
        subjects=fact.names,
    )


JUDGE = Judge(GradientMisuse, other_loss_findings)
