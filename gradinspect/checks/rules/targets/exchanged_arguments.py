"""Losses that are given their labels as the input, and the scores as the target."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.targets import ExchangedArguments
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rewriting import statements_of
from gradinspect.checks.rule import Judge, Rule

EXCHANGED = Rule(
    code="GI341",
    title="the loss is given labels and scores in the wrong order",
    summary="The labels are the input of a cross entropy and the scores of the model its target.",
    explanation="Losses of torch take the output of the model first and the target second; those of other libraries "
    "and papers often take them the other way round. torch accepts both, since the shapes are the same. With labels of "
    "0 and 1 as the input, binary_cross_entropy takes the logarithm of 0 and its gradients are infinite; "
    "binary_cross_entropy_with_logits takes the labels for logits, and its loss falls without end. Reported if all "
    "that the loss got as its input is 0 or 1 and has no graph, while its target has a graph. kl_div is not looked at: "
    "there, either order is used on purpose.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 1)
  loss_of = nn.BCEWithLogitsLoss()
  x = torch.randn(16, 8)
  y = (x[:, :1] > 0).float()
- loss = loss_of(y, model(x))
+ loss = loss_of(model(x), y)
  loss.backward()
""",
    remedy="Give the loss the output of the model first, and the labels second.",
    explains=("GI327", "GI355", "GI501", "GI502"),
)


def exchanged_findings(fact: ExchangedArguments) -> Iterator[Finding]:
    """Report the call, and write it the other way round."""
    where = line_of(fact.used)
    given = _given(fact)
    first, second = given or ("the labels", "the output of the model")
    calls = "In its only call" if fact.num_calls == 1 else f"In each of {fact.num_calls} calls"
    yield EXCHANGED.finding(
        text=f"{calls}, {where} gives {fact.loss} {first} as the input, which is 0 or 1 everywhere and has no graph, "
        f"and {second} as the target, which has one. The input is the output of the model, and the target what it is "
        "to be.",
        places=(*place_of("scores", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=f"Exchange the first two arguments at {where}" + (f": ({second}, {first})." if given else "."),
    )


JUDGE = Judge(ExchangedArguments, exchanged_findings)


def _given(fact: ExchangedArguments) -> tuple[str, str] | None:
    """Return the two arguments as the program writes them, if one call on the line has two or more by place."""
    parts = [part for one in statements_of("" if fact.used is None else fact.used.code) for part in ast.walk(one)]
    calls = [part for part in parts if isinstance(part, ast.Call) and len(part.args) > 1]
    if len(calls) != 1 or any(isinstance(one, ast.Starred) for one in calls[0].args[:2]):
        return None
    first, second = map(ast.unparse, calls[0].args[:2])
    return first, second
