"""Parameters that the loss does not depend on: computed with and dropped, or never read."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.values import MissingGradient, SameCause
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rewriting import statement_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.missing_gradients import and_failure, places_of
from gradinspect.graph import Frame
from gradinspect.units import format_count

MAX_LINES = 3  # that made what is unused
DROPPED = Rule(
    code="GI303",
    title="parameters do not contribute to the loss",
    summary="Something is computed from these parameters, but the loss does not depend on it.",
    explanation="The result ends there: a head whose loss is never added, a pooler whose output is not read, a "
    "value that is only logged, a variable that the next line overwrites. An optimizer holds the parameters, so "
    "they are meant to learn. Under DistributedDataParallel they cause 'Expected to have finished reduction in the "
    "prior iteration' unless find_unused_parameters=True.",
    change="""\
  import torch
  from torch import nn

  body, boxes, classes = nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(8, 3)
  model = nn.ModuleDict({"body": body, "boxes": boxes, "classes": classes})
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(2):
      h = body(torch.randn(16, 4))
      box_loss, class_loss = boxes(h).abs().mean(), classes(h).square().mean()
-     loss = box_loss  # class_loss is missing
+     loss = box_loss + class_loss
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Add the result to the loss, or do not pass these parameters to the optimizer.",
)
UNUSED = Rule(
    code="GI304",
    title="parameters are not used in the forward pass",
    summary="The optimizer holds parameters that nothing on the way to the loss reads.",
    explanation="Typical causes are a layer that is created in __init__ and forgotten in forward, and an optimizer "
    "that holds some parameters of a model that has been replaced since. One of several modules in a ModuleList or "
    "ModuleDict of which others ran, such as an expert, is taken for a choice and not reported. For autograd.grad "
    "it means an input that the loss was not computed from, such as a view or a copy of the right one: 'One of the "
    "differentiated Tensors appears to not have been used in the graph'.",
    change="""\
  import torch
  from torch import nn

  encoder, gate = nn.Linear(4, 8), nn.Linear(4, 8)
  both = nn.ModuleList([encoder, gate])
  optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
  for _ in range(2):
      x = torch.randn(8, 4)
      optimizer.zero_grad()
-     encoder(x).sigmoid().sum().backward()  # the gate is forgotten
+     (encoder(x) * gate(x).sigmoid()).sum().backward()
      optimizer.step()
""",
    remedy="Create the optimizer once the model is complete, and remove unused layers. If a later batch uses them, "
    "check more backward calls with --steps.",
)


def unused_findings(group: SameCause) -> Iterator[Finding]:
    """Report parameters that the loss does not depend on."""
    first = group.first
    if first.kind in ("cut", "returned"):
        return
    rule, (why, remedy) = (DROPPED, _dropped(group)) if first.kind == "unused" else (UNUSED, _unused(group))
    made = dict.fromkeys(one.made for one in group.tensors if one.made is not None)
    yield rule.finding(
        text=f"{why}{and_failure(first.noticed)}",
        places=(
            *(place for line in list(made)[:MAX_LINES] for place in place_of("made", line)), *places_of(first),
            *place_of("optimizer", first.noticed.created),
        ),
        remedy=remedy,
        subjects=group.names,
    )  # fmt: skip


JUDGE = Judge(SameCause, unused_findings)


def _dropped(group: SameCause) -> tuple[str, str]:
    first = group.first
    them = "it" if group.is_one else "them"
    ends = f"No gradient reaches {listed(group.names)}. What is computed from {them} ends at {line_of(first.cut)} with "
    ends += f"{first.op}, and the loss does not depend on it"
    if first.cause == "python":
        return (
            f"{ends}, except perhaps through a Python or NumPy number, which is a constant to backward.",
            f"Use tensor operations only from {line_of(first.cut)} on, or remove {them} from the optimizer.",
        )
    if first.replaced is not None:
        return _replaced(group, first, first.replaced)
    return f"{ends}.", f"Add what {line_of(first.cut)} computes to the loss, or remove {them} from the optimizer."


def _replaced(group: SameCause, first: MissingGradient, line: Frame) -> tuple[str, str]:
    """Name the variable that was assigned anew before anything read it."""
    name, where = first.variable, line_of(line)
    if first.assigned == line:
        return (
            f"{name} is assigned anew at {where} in each round of the loop, and nothing reads it before the next one: "
            f"only the last value is left. No gradient reaches {listed(group.names)}.",
            f"Set {name} to 0 before the loop, and add to it at {where}: {_added(name, line)}.",
        )
    why = f"{name} of {line_of(first.assigned)} is assigned anew at {where} before anything reads it. It was computed "
    why += f"from {listed(group.names)}, so no gradient reaches {'it' if group.is_one else 'them'}."
    unless = f"If {line_of(first.assigned)} is not needed, delete it."
    if "loss" in f"{name} {first.op}".lower():
        return why, f"At {where}, add to {name}: {_added(name, line)}. {unless}"
    return why, f"Let {where} read {name}, or assign another variable; or add to it: {_added(name, line)}. {unless}"


def _added(name: str, line: Frame) -> str:
    """Write an assignment as one that keeps what a variable has."""
    match statement_of(line.code):
        case ast.Assign(targets=[ast.Name()], value=value):
            return f"'{name} = {ast.unparse(ast.BinOp(ast.Name(name), ast.Add(), value))}'"
        case _:
            return f"'{name} = {name} + ...'"


def _unused(group: SameCause) -> tuple[str, str]:
    first, names = group.first, listed(group.names)
    them = "it" if group.is_one else "them"
    modules = list(dict.fromkeys(one.module for one in group.tensors if one.module))
    uncalled = f"{listed(modules)} {'was' if len(modules) == 1 else 'were'} not called" if modules else ""
    observed = "" if first.num_calls is None else f" in {format_count(first.num_calls, 'observed backward call')}"
    why = f"No gradient reaches {names}: {uncalled or f'no operator on the way to the loss reads {them}'}{observed}."
    if first.noticed.kind != "step":
        return why, f"Check whether the loss was computed from a different tensor than {names}, such as a copy."
    return (
        f"{why} {first.noticed.by} holds {them} but never updates {them}.",
        f"Use {them} in forward, or remove {them} from the optimizer.{_used_later(first)}",
    )


def _used_later(one: MissingGradient) -> str:
    """Say how to find out that something is used in a later step after all."""
    if one.num_calls is None:
        return ""
    return f" If a later step uses {one.module or 'it'}, check more calls: --steps {max(10, 4 * one.num_calls)}."
