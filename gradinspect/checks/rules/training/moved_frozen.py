"""Frozen parameters that an optimizer changes all the same."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import MovedFrozen
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

MOVED = Rule(
    code="GI376",
    title="frozen parameters are still updated",
    summary="Parameters were frozen after a step, and the gradient that was left of it still moves them.",
    explanation="requires_grad = False keeps backward from computing a gradient. It does not remove the one that "
    "is there, and an optimizer updates each parameter whose .grad is not None. An old gradient is applied again in"
    " each step. One of zeros, which zero_grad(set_to_none=False) leaves, is enough for momentum and weight decay "
    "to move the parameter. Reported if a step was seen to change a frozen parameter by a gradient that an "
    "earlier step has used; gradients that the program sets itself are not.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
  for step in range(4):
      if step == 1:
-         model[0].requires_grad_(False)  # momentum is still there
+         model[0].requires_grad_(False)
+         for param in model[0].parameters():
+             param.grad = None
      optimizer.zero_grad(set_to_none=False)
      model(torch.randn(5, 8)).square().mean().backward()
      optimizer.step()
""",
    remedy="Set .grad of the parameters to None when they are frozen.",
)


def moved_findings(fact: MovedFrozen) -> Iterator[Finding]:
    """Report frozen parameters that were changed."""
    many = len(fact.names) > 1
    yield MOVED.finding(
        text=f"{listed(fact.names)} {'do' if many else 'does'} not require grad since {line_of(fact.frozen)}, but "
        f"{'have' if many else 'has'} a gradient left from before, so {fact.optimizer} still changes "
        f"{'them' if many else 'it'} at {line_of(fact.step)}.",
        places=(*place_of("frozen", fact.frozen), *place_of("step", fact.step)),
        remedy=f"Set .grad of {'these parameters' if many else 'this parameter'} to None after {line_of(fact.frozen)}: "
        "an optimizer passes over a parameter without a gradient.",
        subjects=fact.names,
    )


JUDGE = Judge(MovedFrozen, moved_findings)
