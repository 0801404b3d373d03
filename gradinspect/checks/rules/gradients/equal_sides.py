"""Comparisons of a tensor with itself, computed twice: the gradients of both sides cancel."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import SameTwice
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

EQUAL = Rule(
    code="GI603",
    title="both sides of a comparison are the same",
    summary="A difference, quotient or loss compares one function of the same parameters with itself.",
    explanation="If both sides of `new - old` or `new / old` are computed from the same weights and both have a graph, "
    "the result is 0 or 1 whatever the weights are, and its gradient is exactly zero: what comes back through one "
    "side cancels what comes back through the other. So it is with the ratio of PPO where the old log-probabilities "
    "are computed anew by the policy that is being trained. Nothing fails, and what the rest of the loss trains still "
    "learns. Reported if both sides went through the same calls, back to the same parameters, and were equal in "
    "every element each time. A side without a graph is not reported.",
    change="""\
  import torch
  from torch import nn

  policy = nn.Linear(8, 1)
  optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
  states = torch.randn(16, 8)
  actions, gains = torch.randn(2, 16, 1)
+ with torch.no_grad():
+     kept = -(policy(states) - actions).square()
  for _ in range(3):
      new = -(policy(states) - actions).square()
-     old = -(policy(states) - actions).square()
+     old = kept
      loss = -(torch.exp(new - old) * gains).mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Compute the side that is to stay as it is once, under torch.no_grad(), before the parameters change, and "
    "keep it.",
)
_RESULTS = {"sub": "difference is 0", "subtract": "difference is 0", "isub": "difference is 0"} | dict.fromkeys(
    ("div", "divide", "true_divide", "truediv"), "quotient is 1"
)


def equal_findings(fact: SameTwice) -> Iterator[Finding]:
    """Report a comparison of the same with the same."""
    result = _RESULTS.get(fact.op, f"{fact.op} of both is constant")
    first, second = line_of(fact.first), line_of(fact.second)
    lines = f"{first} and {second} compute" if first != second else f"{first} computes"
    yield EQUAL.finding(
        text=f"{lines} the same function of the same parameters twice, and {line_of(fact.compared)} compares one "
        f"result with the other. All elements were equal in each of {format_count(fact.num_calls, 'call')}: the "
        f"{result}, whatever the parameters are. No gradient comes through it, since those of both sides cancel.",
        places=(
            *place_of("new", fact.first),
            *place_of("old", fact.second if first != second else None),
            *place_of("compared", fact.compared),
        ),
        remedy=f"If {second} stands for the parameters as they were, compute it before they change, under "
        "torch.no_grad(), and keep it with the data: it is computed anew for each step. If it is to come from another "
        "model, call that one.",
        subjects=fact.names,
    )


JUDGE = Judge(SameTwice, equal_findings)
