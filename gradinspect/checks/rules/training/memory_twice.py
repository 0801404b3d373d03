"""Two parameters in one memory: weights that were tied by their data."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.training import TwoInOneMemory
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.syntax import parse

TWICE = Rule(
    code="GI375",
    title="two parameters share one memory",
    summary="Weights were tied by their data, so the optimizer updates the same memory twice in each step.",
    explanation="`decoder.weight.data = encoder.weight.data` and `decoder.weight = nn.Parameter(encoder.weight)` "
    "leave two parameters in one memory. Each gets the gradient of its own uses only, and has its own state in "
    "the optimizer, so that the weights are updated twice with a part of the gradient. With Adam that is not the "
    "update of tied weights, gradients are clipped wrongly, and after model.to(device) or loading a checkpoint "
    "the two are no longer tied. If one parameter is assigned to both modules, it has one gradient and one state. "
    "Parts of a flat buffer are not reported.",
    change="""\
  import torch
  from torch import nn

  embed, out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
  model = nn.ModuleDict({"embed": embed, "out": out})
- out.weight.data = embed.weight.data  # two parameters, one memory
+ out.weight = embed.weight
  optimizer = torch.optim.Adam(model.parameters())
  for _ in range(2):
      optimizer.zero_grad()
      logits = model["out"](model["embed"](torch.arange(9)))
      nn.functional.cross_entropy(logits, torch.arange(9)).backward()
      optimizer.step()
""",
    remedy="Assign the parameter itself: decoder.weight = encoder.weight.",
)


def memory_findings(fact: TwoInOneMemory) -> Iterator[Finding]:
    """Report two parameters in one memory."""
    where = line_of(fact.made)
    if fact.is_same_shape:
        tied = None if fact.made is None else _tied(fact.made.code)
        remedy = (
            f"Assign the parameter itself at {where}, before the optimizer is made: "
            f"{tied or f'{fact.second} = {fact.first}'}"
        )
    else:
        remedy = (
            f"Keep one parameter, and use its transpose for the other layer: F.linear(x, {fact.first}.t()) "
            f"in place of {fact.second}."
        )
    yield TWICE.finding(
        text=f"{fact.first} and {fact.second} are two parameters in one memory since {where}. Each has its own "
        f"gradient and its own state in the optimizer, so {line_of(fact.step)} updates that memory twice, each time "
        "with a part of the gradient.",
        places=(*place_of("shared", fact.made), *place_of("step", fact.step)),
        remedy=remedy,
        subjects=(fact.first, fact.second),
    )


JUDGE = Judge(TwoInOneMemory, memory_findings)


def _tied(code: str) -> str | None:
    """Write an assignment of data as one of parameters; None if it is none."""
    try:
        (statement,) = parse(code).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = _parameter(statement.targets[0]), _parameter(statement.value)
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Name | ast.Attribute):
        return None
    return f"{ast.unparse(target)} = {ast.unparse(value)}"


def _parameter(node: ast.expr) -> ast.expr:
    """Return the parameter of which an expression is the data: `w` for `w.data` and `nn.Parameter(w.detach())`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
            node = node.func.value
        elif isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("Parameter"):
            node = node.args[0]
        else:
            return node
