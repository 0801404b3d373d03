"""Custom autograd.Functions whose derivatives were checked numerically (finite differences): the verdict in words."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import CheckedFunction
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

WRONG_BACKWARD = Rule(
    code="GI201",
    title="incorrect backward of a custom Function",
    summary="The backward of a custom autograd.Function is not the derivative of its forward.",
    explanation="Each custom autograd.Function in the observed graphs is run again after the program has ended: in "
    "double precision, on copies of the arguments of its first call, reduced to a small size where it supports that. "
    "Its backward is compared with the numerical derivative (finite differences) of its forward: in a few random "
    "directions and in a copy of the process, or with --gradcheck in full, as in torch.autograd.gradcheck. An "
    "intentional gradient, of a step function (a straight-through estimator) or of the identity (gradient reversal), "
    "is not reported. A Function that is random or supports only one dtype is listed as not verified.",
    change="""\
  import torch


  class Cube(torch.autograd.Function):
      @staticmethod
      def forward(ctx, x):
          ctx.save_for_backward(x)
          return x**3

      @staticmethod
      def backward(ctx, grad):
          (x,) = ctx.saved_tensors
-         return grad * x**2  # the factor 3 is missing
+         return grad * 3 * x**2


  Cube.apply(torch.randn(3, requires_grad=True)).sum().backward()
""",
    remedy="Correct the formula for the argument that is named.",
    command="gradinspect check --gradcheck",
)
WRONG_DOUBLE_BACKWARD = Rule(
    code="GI202",
    title="incorrect double backward of a custom Function",
    summary="Differentiating the backward of a custom autograd.Function gives wrong second-order gradients.",
    explanation="A backward written with torch operators can itself be differentiated, as gradient penalties and "
    "second-order methods do. For that, what it uses must have a history: inputs and outputs from "
    "ctx.saved_tensors have one; tensors stored as attributes of ctx, detached tensors, and results of NumPy or "
    "no_grad() do not, and their contribution is silently missing. --gradcheck finds this with "
    "torch.autograd.gradgradcheck.",
    change="""\
  import torch


  class Exp(torch.autograd.Function):
      @staticmethod
      def forward(ctx, x):
-         ctx.result = x.exp()  # has no history in backward
-         return ctx.result.clone()
+         result = x.exp()
+         ctx.save_for_backward(result)
+         return result

      @staticmethod
      def backward(ctx, grad):
-         return grad * ctx.result
+         (result,) = ctx.saved_tensors
+         return grad * result


  x = torch.randn(3, requires_grad=True)
  (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
  (g * x).sum().backward()
""",
    remedy="Return the result and save it with save_for_backward(), or decorate backward with once_differentiable.",
    command="gradinspect check --gradcheck",
)


def derivative_findings(function: CheckedFunction) -> Iterator[Finding]:
    """Report a Function whose backward or double backward is wrong."""
    if function.verdict in ("correct", "one direction", "surrogate", "not checked"):
        return
    rule, text, remedy = _words(function)
    yield rule.finding(
        text=text,
        places=(
            *place_of("applied", function.applied),
            *place_of("defined", function.defined),
            *place_of("returned", function.returned),
        ),
        remedy=remedy,
        subjects=(function.name,),
    )


JUDGE = Judge(CheckedFunction, derivative_findings)


def _words(function: CheckedFunction) -> tuple[Rule, str, str]:
    """Return the rule, why, and what to do."""
    where = line_of(function.defined)
    if function.verdict == "writes gradient":
        return (
            WRONG_BACKWARD,
            f"{function.name}.backward writes into the gradient that it receives. Other nodes, hooks and .grad may use "
            "the same memory, so their gradients will be wrong.",
            f"At {where}, make a new tensor instead, such as by torch.where() or masked_fill(), or clone() the "
            "gradient before writing.",
        )
    if function.verdict == "wrong backward":
        wrong = [slope.argument for slope in function.slopes if slope.is_wrong]
        what = f"the gradient of {', '.join(wrong)}" if wrong else "each formula"
        remedy = f"Correct {what} at {where}. If this is intentional, skip it with --skip {WRONG_BACKWARD.code}."
        return WRONG_BACKWARD, _wrong(function), remedy
    return (
        WRONG_DOUBLE_BACKWARD,
        _wrong_twice(function),
        f"At {where}, compute with torch operators on inputs or outputs from ctx.saved_tensors, or decorate backward "
        "with once_differentiable to rule out a second derivative.",
    )


def _wrong(function: CheckedFunction) -> str:
    parts = [
        f"{slope.argument}: numeric {slope.numeric:.4g}, backward {slope.backward:.4g}"
        for slope in function.slopes
        if slope.is_wrong
    ]
    detail = f" Directional derivative with respect to {'; '.join(parts)}." if parts else f" {function.reason}"
    return f"{function.name}.backward is not the derivative of its forward, in double precision.{detail}"


def _wrong_twice(function: CheckedFunction) -> str:
    return (
        f"{function.name}.backward is correct, but its own derivative is not: second-order gradients through it, as in "
        f"a gradient penalty, will be wrong or fail. {function.reason}".rstrip()
    )
