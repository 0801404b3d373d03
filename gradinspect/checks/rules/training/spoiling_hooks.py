"""Hooks of tensors that take away a gradient, or reverse its sign."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import SpoilingHook
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

SPOILED = Rule(
    code="GI803",
    title="hook zeroes or reverses a gradient",
    summary="In every call, a hook of a tensor returns only zeros, or the opposite of the gradient it gets.",
    explanation="What a hook returns takes the place of the gradient. Zeros stop the training of everything behind "
    "the tensor, while momentum and weight decay of an optimizer still move its parameters; a reversed sign makes "
    "the optimizer climb. It is reported if every call shows it: zeros for a parameter that an optimizer holds, "
    "and for the result of an operator; a reversed sign only for a parameter of a layer of torch.nn. Elsewhere it "
    "is common, as for a Lagrange multiplier, or between adversaries.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
- model[0].weight.register_hook(lambda g: -g.clamp(-1, 1))  # the sign
+ model[0].weight.register_hook(lambda g: g.clamp(-1, 1))
  x, y = torch.randn(16, 4), torch.randn(16, 1)
  for _ in range(4):
      optimizer.zero_grad()
      (model(x) - y).square().mean().backward()
      optimizer.step()
""",
    remedy="Return the gradient that you want, or None to leave it as it is. To freeze a parameter call "
    "requires_grad_(False) on it, and to cut a value off use detach().",
)


def spoiling_findings(fact: SpoilingHook) -> Iterator[Finding]:
    """Report what hooks of one line do."""
    where = line_of(fact.registered)
    returns = f"The hook registered at {where} returns only zeros"
    if fact.effect == "reversed":
        text = f"The hook registered at {where} reverses the sign of the gradient of {listed(fact.names)}, so the "
        text += "optimizer climbs instead of descending."
        remedy = f"Leave out the minus sign in the hook of {where}. If the loss is to grow, negate the loss instead."
    elif fact.names:
        do, it = ("does", "it") if len(fact.names) == 1 else ("do", "them")
        text = f"{returns} for the gradient of {listed(fact.names)}, which {do} not learn. An "
        text += f"optimizer holds {it}, and its momentum and weight decay still apply."
        remedy = f"To freeze {it}, call requires_grad_(False) on {it} and give {it} to no optimizer. Otherwise return "
        remedy += "the gradient from the hook, or None to leave it as it is."
    else:
        text = f"{returns}, so nothing behind its tensor learns from it."
        remedy = "Return the gradient from the hook, or None to leave it as it is. If no gradient is to pass there, "
        remedy += "use detach() instead of the hook."
    yield SPOILED.finding(
        text=text,
        places=(*place_of("hooked", fact.registered), *place_of("backward", fact.backward)),
        remedy=remedy,
        subjects=fact.names,
    )


JUDGE = Judge(SpoilingHook, spoiling_findings)
