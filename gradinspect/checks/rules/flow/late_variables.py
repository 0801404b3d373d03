"""Functions made in a loop that all use the last value of its variable."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import LateVariable
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

LATE = Rule(
    code="GI312",
    title="functions made in a loop share its variable",
    summary="Each looks the variable up when it is called, finds the last value, and uses the same parameter.",
    explanation="A lambda or an inner function keeps no value of a variable from outside: it looks it up when it "
    "runs. Of functions that are made in a loop and called after it, each finds what the loop assigned last. So all "
    "of them use the last parameter or layer, and no gradient reaches the others. Reported if parameters get no "
    "gradient, and a list, tuple or dict has several functions of one line that read the variable of the loop around "
    "it. One that is passed as a default, such as i=i, is kept for each.",
    change="""\
  import torch

  weights = [torch.randn(5, requires_grad=True) for _ in range(3)]
- scales = [lambda x: x * weights[i] for i in range(3)]
+ scales = [lambda x, i=i: x * weights[i] for i in range(3)]
  optimizer = torch.optim.SGD(weights, lr=0.1)
  for _ in range(3):
      x = torch.randn(8, 5)
      loss = sum(scale(x) for scale in scales).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Pass the variable as a default: `lambda x, i=i: ...`. Or make the functions by another function.",
)


def late_findings(fact: LateVariable) -> Iterator[Finding]:
    """Name the variable, and what is never used."""
    made = line_of(fact.made)
    yield LATE.finding(
        text=f"The {fact.count} functions that {made} makes look {fact.variable} up when they are called, after the "
        f"loop: all of them find its last value. No gradient reaches {listed(fact.names)}.",
        places=(*place_of("made", fact.made), *place_of("backward", fact.backward), *place_of("step", fact.noticed)),
        remedy=f"At {made}, keep the value for each function, as a default: {fact.variable}={fact.variable}.",
        subjects=fact.names,
    )


JUDGE = Judge(LateVariable, late_findings)
