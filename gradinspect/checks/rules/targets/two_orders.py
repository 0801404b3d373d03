"""Inputs and targets in orders that were drawn apart, or of which only the inputs have one."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import OneOrder, TwoOrders
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

ORDERS = Rule(
    code="GI326",
    title="inputs and targets are shuffled apart",
    summary="The inputs are in another order than the targets, so no example has its own target.",
    explanation="x[torch.randperm(n)] and y[torch.randperm(n)] are put into two orders. Each example is then compared "
    "with the target of another one, and the best that a model can learn is the mean. Reported where everything that "
    "a loss compares went through one permutation on one side and another one on the other. So do two loaders with "
    "shuffle=True, one of inputs and one of targets, unless their generators have the same seed. And where the rows of "
    "the inputs alone are taken by a permutation, or by the order of their lengths, and not put back.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 3)
  x = torch.randn(32, 8)
  y = x[:, :3].argmax(1)
  for _ in range(4):
-     a, b = x[torch.randperm(32)], y[torch.randperm(32)]
+     order = torch.randperm(32)
+     a, b = x[order], y[order]
      nn.functional.cross_entropy(model(a), b).backward()
""",
    remedy="Draw one permutation, and index both with it.",
)


def order_findings(fact: TwoOrders) -> Iterator[Finding]:
    """Report two permutations."""
    second = None if fact.second == fact.first else fact.second
    where = line_of(fact.first) if second is None else f"{line_of(fact.first)} and {line_of(second)}"
    yield ORDERS.finding(
        text=f"In each of {fact.num_calls} calls, the loss compares what one permutation of {fact.length:,} examples "
        "has ordered with what another one has: each example meets the target of another.",
        places=(
            *(place for made in dict.fromkeys(fact.loaders) for place in place_of("loader", made)),
            *place_of("drawn", fact.first),
            *place_of("drawn", second),
            *place_of("loss", fact.used),
        ),
        remedy="Let one loader draw the pairs: give it one dataset with both, such as TensorDataset(inputs, targets)."
        if fact.are_loaders
        else f"Draw one permutation at {where}, and index inputs and targets with it.",
    )


def one_order_findings(fact: OneOrder) -> Iterator[Finding]:
    """Report inputs that were reordered alone."""
    order = "the order of a sort" if fact.is_sorted else "a permutation"
    made = None if fact.made == fact.taken else fact.made
    yield ORDERS.finding(
        text=f"In each of {fact.num_calls} calls, {line_of(fact.taken)} takes the inputs by {order} of "
        f"{fact.length:,}, and the loss compares them with targets in the order before.",
        places=(*place_of("order", made), *place_of("taken", fact.taken), *place_of("loss", fact.used)),
        remedy=f"Index the targets with the same order as {line_of(fact.taken)}"
        + (", or put the outputs back with its argsort()." if fact.is_sorted else "."),
    )


JUDGE = Judge(TwoOrders, order_findings)
ONE_JUDGE = Judge(OneOrder, one_order_findings)
