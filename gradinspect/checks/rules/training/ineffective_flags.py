"""Parameters that were meant to be frozen, by an attribute that torch does not read."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import IneffectiveFlag
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

INEFFECTIVE = Rule(
    code="GI374",
    title="freezing or unfreezing has no effect",
    summary="An attribute was set that torch does not read, so the parameters are trained, or frozen, as before.",
    explanation="Python lets a program set any attribute of a tensor or module. `param.require_grad = False` is "
    "misspelled, and `module.requires_grad = False` sets an attribute that only tensors have. Neither raises an "
    "error, and the parameters still require grad: backward computes their gradients, and an optimizer that holds "
    "them changes them. Nor does `module.requires_grad = True` unfreeze anything. Reported if backward reaches such "
    "parameters, or if all of such a module stay frozen. A class that reads its own attribute "
    "`self.requires_grad` is not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
  for param in model[0].parameters():
-     param.require_grad = False  # the name is requires_grad
+     param.requires_grad = False
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(2):
      optimizer.zero_grad()
      model(torch.randn(5, 8)).square().mean().backward()
      optimizer.step()
""",
    remedy="Write param.requires_grad = False for a tensor, module.requires_grad_(False) for a module.",
)


def flag_findings(fact: IneffectiveFlag) -> Iterator[Finding]:
    """Report a flag that was meant to freeze parameters."""
    where = line_of(fact.set)
    if not fact.modules:
        why = f"{where} sets .{fact.attribute} of the parameters, but torch reads .requires_grad"
        remedy = f"Write {fact.target or 'param'}.requires_grad = False at {where}."
    else:
        of = listed([path or "the model" for path in fact.modules])
        kind = "a module" if len(fact.modules) == 1 else "modules"
        why = f"{where} sets .{fact.attribute} of {of}, {kind}, but torch reads .requires_grad of parameters only"
        remedy = f"Call {fact.target or 'module'}.requires_grad_(False) at {where}: it sets that of each parameter."
    still = "s" if len(fact.names) == 1 else ""
    effect = f"still require{still} grad, and backward computes the gradient."
    if fact.unfreezes:
        remedy = remedy.replace("requires_grad_(False)", "requires_grad_(True)")
        effect = f"do{'es' if still else ''} not require grad, so nothing trains {'it' if still else 'them'}."
    yield INEFFECTIVE.finding(
        text=f"{why}. {listed(fact.names)} {effect}",
        places=(*place_of("set", fact.set), *place_of("backward", fact.backward)),
        remedy=remedy,
        subjects=fact.names,
    )


JUDGE = Judge(IneffectiveFlag, flag_findings)
