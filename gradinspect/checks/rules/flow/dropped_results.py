"""Calls of functions that return their result, where the result is thrown away."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.training import DroppedResult
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.syntax import parse

DROPPED = Rule(
    code="GI307",
    title="the result of a call is dropped",
    summary="A function that returns a new tensor is called as a statement, so it has no effect.",
    explanation="`x.detach()` returns a tensor without a graph, and x keeps its own. So do `x.clamp(min=0)`, "
    "`x.masked_fill(mask, 0)`, `F.relu(x)` and `x.unsqueeze(1)`: only functions whose name ends with an underscore "
    "change the tensor itself. If the result is not assigned, gradients flow as if the call was not there. "
    "Reported if backward then reaches the tensor that the function was given, in files of the program; of data, "
    "which has no graph, if it was to be moved, cast or given another shape or range, as by `x.to(device)`, and an "
    "operator that makes a graph reads it as it was; and if a loop over parameters assigns what it computes to its own "
    "variable, and nothing reads that.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 1)
  x, following = torch.randn(5, 8), torch.randn(5, 8)
  target = model(following)
- target.detach()  # returns another tensor
+ target = target.detach()
  loss = (model(x) - target).square().mean()
  loss.backward()
""",
    remedy="Assign the result: x = x.detach().",
)


def dropped_findings(fact: DroppedResult) -> Iterator[Finding]:
    """Report a call without an effect."""
    where, at = ("The program", "") if fact.called is None else (line_of(fact.called), f" at {line_of(fact.called)}")
    assigned = None if fact.called is None else _assigned(fact.called.code)
    written = f": {assigned}" if assigned else " to a variable, and use that from there on."
    after = "what follows reads" if fact.is_data else "backward goes through"
    yield DROPPED.finding(
        text=f"{fact.name}() returns a new tensor and leaves the one that it is given as it is. {where} does not use "
        f"what it returns, so the call has no effect, and {after} the tensor as it was.",
        places=(*place_of("called", fact.called), *place_of("backward", fact.backward)),
        remedy=(None if fact.is_data else _in_a_loop(fact, assigned)) or f"Assign the result{at}{written}",
    )


JUDGE = Judge(DroppedResult, dropped_findings)


def _in_a_loop(fact: DroppedResult, assigned: str | None) -> str | None:
    """Say what an assignment to the variable of a loop changes; None if there is none."""
    name, _, call = (assigned or "").partition(" = ")
    if fact.called is None or name.partition(".")[0] not in fact.loop_variables:
        return None
    where = line_of(fact.called)
    if "." in name:
        return f"Assign the result at {where}: {assigned}"
    return (
        f"Collect the results, and use them in place of what the loop at {where} goes through: a list of {call} for "
        f"each {name}. '{assigned}' changes the variable alone, which is enough only if the rest of the loop reads it."
    )


def _assigned(code: str) -> str | None:
    """Write a call as an assignment to the variable that it is given; None if it is given something else."""
    try:
        (statement,) = parse(code).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    for tensor in call.args[:1] if _is_function(call) else [call.func.value]:  # type: ignore[attr-defined]
        if isinstance(tensor, ast.Name | ast.Attribute | ast.Subscript):
            return f"{ast.unparse(tensor)} = {ast.get_source_segment(code, call)}"
    return None


def _is_function(call: ast.Call) -> bool:
    """Return whether a call is one of a function of torch, such as F.relu(x), rather than of a method of a tensor."""
    if not isinstance(call.func, ast.Attribute):
        return True
    return ast.unparse(call.func.value) in {"torch", "F", "nn.functional", "torch.nn.functional", "torch.special"}
