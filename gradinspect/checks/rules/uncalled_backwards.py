"""A method `backward` of a module, which autograd does not know."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import UncalledBackward
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

UNCALLED = Rule(
    code="GI203",
    title="nothing calls the backward of a module",
    summary="A module defines backward, as a custom Function would, but autograd never calls it.",
    explanation="loss.backward() runs the derivatives of the operators in forward. A method called backward counts in "
    "a torch.autograd.Function only, with static methods and a ctx, called by apply(). In an nn.Module it is a method "
    "like others: the gradient that it was to change passes as if it were not there. Reported for a class of the "
    "program whose backward takes a gradient, if no line of the program calls one with an argument, or hands it on.",
    change="""\
  import torch
  from torch import nn


- class Reverse(nn.Module):
-     def forward(self, x):
-         return x.view_as(x)
-
-     def backward(self, grad):
-         return -grad
+ class Reversal(torch.autograd.Function):
+     @staticmethod
+     def forward(ctx, x):
+         return x.view_as(x)
+
+     @staticmethod
+     def backward(ctx, grad):
+         return -grad
+
+
+ class Reverse(nn.Module):
+     def forward(self, x):
+         return Reversal.apply(x)


  model = nn.Sequential(nn.Linear(3, 2), Reverse(), nn.Linear(2, 1))
  for _ in range(2):
      model(torch.randn(4, 3)).sum().backward()
""",
    remedy="Make it a torch.autograd.Function with static methods, and call its apply() in forward.",
)


def uncalled_findings(fact: UncalledBackward) -> Iterator[Finding]:
    """Say which class has it."""
    yield UNCALLED.finding(
        text=f"{fact.module} is an nn.Module with a method backward. Autograd calls the derivatives of what forward "
        "computes, and no method of a module; no line of the program calls it either.",
        places=place_of("defined", fact.defined),
        remedy=f"Move it into a torch.autograd.Function: static methods forward(ctx, x) and backward(ctx, grad), and "
        f"{fact.module}.forward returns its apply(x). Or remove {line_of(fact.defined)}.",
        subjects=(fact.module,),
    )


JUDGE = Judge(UncalledBackward, uncalled_findings)
