"""Hooks that are registered in each iteration, and never removed."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import HookPile
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

PILED = Rule(
    code="GI802",
    title="hooks pile up",
    summary="Each iteration registers one more hook on the same tensor or module.",
    explanation="A hook stays until the handle that its registration returns is removed. If a loop registers it on "
    "a parameter or a module, there is one more in each iteration, and all of them run: a hook that halves a "
    "gradient halves it again and again, one that stores activations stores them many times, and what the hooks "
    "refer to is never freed. Hooks on the results of operators are gone with their graph and are not reported, "
    "nor are those that are removed.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
+ model.weight.register_hook(lambda g: g * 0.5)
  for _ in range(4):
-     model.weight.register_hook(lambda g: g * 0.5)  # one more each time
      optimizer.zero_grad()
      model(torch.randn(5, 8)).square().mean().backward()
      optimizer.step()
""",
    remedy="Register the hook once, before the loop, or remove its handle in the same iteration.",
)


def pile_findings(fact: HookPile) -> Iterator[Finding]:
    """Report hooks that become more."""
    where = line_of(fact.registered)
    kind = "forward hook" if fact.kind == "forward" else "backward hook" if fact.kind == "backward" else "hook"
    each = "" if len(fact.names) == 1 else " on each"
    yield PILED.finding(
        text=f"{where} registers one more {kind} on {listed(fact.names)} in each iteration, and none is removed. "
        f"By then there were {fact.count}{each}, and all of them run.",
        places=(*place_of("hooked", fact.registered), *place_of("backward", fact.backward)),
        remedy=f"Move {where} before the loop, so that it runs once. Or keep the handle that it returns, and call "
        "handle.remove() after backward.",
        subjects=fact.names,
    )


JUDGE = Judge(HookPile, pile_findings)
