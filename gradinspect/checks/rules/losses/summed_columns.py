"""One column of gradients that is the sum over several columns of outputs."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import SummedColumns
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

SUMMED_COLUMNS = Rule(
    code="GI705",
    title="gradients of several columns are summed into one",
    summary="autograd.grad(u, t, ones_like(u)) is the sum of the gradients of all columns of u, and is used for each.",
    explanation="grad_outputs of ones means: the gradient of u.sum(). Rows that do not depend on each other keep their "
    "own gradients; columns that all depend on the same t do not, and du/dt + dv/dt stands where du/dt and dv/dt are "
    "wanted. Reported where the result has one column, and is broadcast against a tensor of u's shape.",
    change="""\
  import torch
  from torch import nn

  net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2))
  t = torch.rand(6, 1, requires_grad=True)
  u = net(t)
- rate = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]
+ columns = [torch.autograd.grad(column.sum(), t, create_graph=True)[0]
+            for column in u.unbind(1)]
+ rate = torch.cat(columns, 1)
  (rate + u).square().mean().backward()
""",
    remedy="Take the gradient of each column alone, and join them: torch.cat([grad(c.sum(), t)[0] for c in "
    "u.unbind(1)], 1), with create_graph=True.",
)


def summed_columns_findings(fact: SummedColumns) -> Iterator[Finding]:
    """Report a gradient that is the sum of several."""
    graded, used, shape = line_of(fact.graded), line_of(fact.used), format_shape(fact.shape)
    yield SUMMED_COLUMNS.finding(
        text=f"{graded} takes the gradient of {shape} with ones for grad_outputs: the one column that it returns is "
        f"the sum of the gradients of {fact.shape[1]} columns. {used} broadcasts it against {shape}, as if it were "
        "that of each.",
        places=(*place_of("gradient", fact.graded), *place_of("used", fact.used)),
        remedy=f"At {graded}, take the gradient of each column alone, and join them: torch.cat([torch.autograd.grad("
        "c.sum(), t, create_graph=True)[0] for c in u.unbind(1)], 1), where u is differentiated by t.",
    )


JUDGE = Judge(SummedColumns, summed_columns_findings)
