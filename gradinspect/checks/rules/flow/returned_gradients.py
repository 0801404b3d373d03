"""Gradients that autograd.grad() returns, and that no `.grad` of a parameter ever holds."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import SameCause
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.missing_gradients import places_of

RETURNED = Rule(
    code="GI310",
    title="the optimizer never gets the gradients that were computed",
    summary="autograd.grad() computes gradients of parameters, their optimizer steps, and `.grad` is always None.",
    explanation="autograd.grad() returns gradients and leaves `.grad` as it is. An optimizer of torch reads `.grad` "
    "only, and passes over a parameter without one, so it steps and changes nothing. Reported of parameters that no "
    "backward() reaches and that had no `.grad` in any observed step. A program that assigns what autograd.grad() "
    "returns to `.grad`, or updates the parameters itself, is not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(3, 1)
  optimizer = torch.optim.Adam(model.parameters())
  for _ in range(3):
      x = torch.randn(8, 3)
      loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
-     grads = torch.autograd.grad(loss, list(model.parameters()))
+     optimizer.zero_grad()
+     loss.backward()
      optimizer.step()  # changes nothing
""",
    remedy="Call backward() on the loss, or assign each gradient to the `.grad` of its parameter before the step.",
)


def returned_findings(group: SameCause) -> Iterator[Finding]:
    """Report parameters whose gradients were returned only."""
    first, names = group.first, listed(group.names)
    if first.kind != "returned":
        return
    yield RETURNED.finding(
        text=f"{line_of(first.backward)} computes gradients of {names} and returns them, but no .grad ever holds them, "
        f"so {line_of(first.noticed.frame)} changes nothing.",
        places=(*places_of(first), *place_of("optimizer", first.noticed.created)),
        remedy=f"Call zero_grad() and then backward() on the loss in place of {line_of(first.backward)}, or assign "
        f"each gradient to the .grad of its parameter before {line_of(first.noticed.frame)}.",
        subjects=group.names,
    )


JUDGE = Judge(SameCause, returned_findings)
