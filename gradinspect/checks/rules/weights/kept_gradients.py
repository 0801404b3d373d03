"""Optimizers that keep a gradient itself as their state, which the next backward call writes to."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.training import KeptGradient
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rewriting import statements_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

KEPT = Rule(
    code="GI388",
    title="an optimizer keeps a gradient without a copy",
    summary="The state of an optimizer of the program is the tensor in .grad, which the next backward adds to.",
    explanation='`state["momentum"] = p.grad` keeps the tensor itself. Where gradients are cleared in place, by '
    "zero_grad(set_to_none=False) or p.grad.zero_(), the next backward writes into the same memory: what was to be "
    "remembered is gone, and what the step writes into its state changes the gradient. Reported of optimizers that a "
    "program defines, if it was so after each of the last three steps; where gradients are set to None, the first "
    "gradient is nobody else's, and keeping it does no harm.",
    change="""\
  import torch
  from torch import nn

  class Momentum(torch.optim.Optimizer):
      def __init__(self, params):
          super().__init__(params, {"lr": 0.1})

      @torch.no_grad()
      def step(self):
          for p in self.param_groups[0]["params"]:
              state = self.state[p]
              if "velocity" not in state:
-                 state["velocity"] = p.grad
+                 state["velocity"] = p.grad.clone()
              else:
                  state["velocity"].mul_(0.9).add_(p.grad)
              p.sub_(state["velocity"], alpha=0.1)

  model = nn.Linear(8, 4)
  optimizer = Momentum(model.parameters())
  for _ in range(4):
      loss = model(torch.randn(5, 8)).square().mean()
      optimizer.zero_grad(set_to_none=False)
      loss.backward()
      optimizer.step()
""",
    remedy="Keep a copy: p.grad.clone().",
)


def kept_findings(fact: KeptGradient) -> Iterator[Finding]:
    """Say which state is the gradient."""
    where = line_of(fact.kept if fact.kept is not None else fact.step)
    yield KEPT.finding(
        text=f"After each of the last {fact.num_steps} steps, the state {fact.key!r} of {fact.optimizer} was the "
        "tensor in .grad itself. Clearing the gradient clears that state, backward writes the new gradient into it, "
        "and what the step writes there changes the gradient.",
        places=(*place_of("kept", fact.kept), *place_of("step", fact.step)),
        remedy=f"Keep a copy at {where}: {_copied(fact.kept, fact.key)}.",
        subjects=(fact.optimizer,),
    )


JUDGE = Judge(KeptGradient, kept_findings)


def _copied(kept: Frame | None, key: str) -> str:
    """Write the assignment with a copy."""
    for statement in statements_of("" if kept is None else kept.code):
        match statement:
            case ast.Assign(targets=[target], value=ast.Name() | ast.Attribute() as value):
                return f"{ast.unparse(target)} = {ast.unparse(value)}.clone()"
    return f"call clone() on the gradient that becomes {key!r}"
