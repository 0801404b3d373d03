"""Parameters that have a gradient and do not change: what no other rule explains."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import UnmovedParameters
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_share

FLOAT32 = "Keep the parameters in float32, and let torch.autocast compute in bfloat16, or in float16 with a GradScaler."
UNMOVED = Rule(
    code="GI380",
    needs_values=True,
    title="parameters have a gradient and do not change",
    summary="Backward reaches these parameters, their optimizer steps, and their values stay the same.",
    explanation="The values are compared bit by bit from one backward call to the next, with at least three steps of "
    "the optimizer in between. The step may change nothing: the learning rate times the gradient is less than the "
    "dtype can add to the values, as in bfloat16, or an optimizer of the program's own assigns to a local variable. "
    "Something may set the gradient to zero before the step. Or the step changes the values, and something sets them "
    "back: a state dict that is loaded in the loop, a copy that is restored. Gradients that are exactly zero are "
    "reported if that is so of all parameters of the optimizer: two terms that cancel. In bfloat16 and float16 "
    "nine of ten elements that stay the same are enough, as counted in the steps with the largest learning rate. "
    "Reported only where no other finding explains it; a learning rate of 0 is GI368.",
    change="""\
  import torch
  from torch import nn

- model = nn.Linear(8, 4).to(torch.bfloat16)
+ model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
  x = torch.randn(5, 8)
  for _ in range(4):
      optimizer.zero_grad()
-     loss = model(x.bfloat16()).square().mean()
+     with torch.autocast("cpu", dtype=torch.bfloat16):
+         loss = model(x).square().mean()
      loss.backward()
      optimizer.step()  # adds less than bfloat16 can tell apart
""",
    remedy="Compare the parameters before and after the step, and before the next backward call.",
    is_general=True,
)


def unmoved_findings(fact: UnmovedParameters) -> Iterator[Finding]:
    """Say between which lines nothing changes."""
    if fact.kind == "rounded":
        yield _rounded(fact)
        return
    why, remedy = _assigned(fact) if fact.kind == "assigned" else _words(fact)
    although = f", although {fact.optimizer} has stepped {fact.num_steps} times" if fact.optimizer else ""
    yield UNMOVED.finding(
        text=f"{listed(fact.names)} {'has' if len(fact.names) == 1 else 'have'} the same values before each backward "
        f"call{although}. {why}",
        places=(
            *place_of("optimizer", fact.created), *place_of("backward", fact.backward), *place_of("step", fact.step),
            *place_of("assigned" if fact.kind == "assigned" else "written", fact.written),
        ),
        remedy=remedy,
        subjects=fact.names,
    )  # fmt: skip


JUDGE = Judge(UnmovedParameters, unmoved_findings)


def _rounded(fact: UnmovedParameters) -> Finding:
    """Report steps that change a few elements only."""
    share = format_share(fact.num_lost, fact.num_elements)
    return UNMOVED.finding(
        text=f"In {fact.num_steps} steps of {fact.optimizer}, {share} of the elements of {listed(fact.names)} that had "
        f"a gradient have stayed the same: with a learning rate of {fact.rate:.1e}, a step is less than {fact.dtype} "
        "can add to them.",
        places=(
            *place_of("optimizer", fact.created), *place_of("backward", fact.backward), *place_of("step", fact.step),
        ),
        remedy=FLOAT32,
        subjects=fact.names,
    )  # fmt: skip


def _assigned(fact: UnmovedParameters) -> tuple[str, str]:
    where = line_of(fact.written)
    return (
        f"{where} makes new tensors of parameters and gradients, assigns them to a variable, and nothing reads them: "
        "the parameters stay what they are.",
        f"At {where}, write the update into the parameter, under torch.no_grad(): p -= lr * p.grad, not "
        "p = p - lr * p.grad.",
    )


def _words(fact: UnmovedParameters) -> tuple[str, str]:
    it = "it" if len(fact.names) == 1 else "them"
    step, backward = line_of(fact.step), line_of(fact.backward)
    if fact.kind == "undone":
        where = "something" if fact.written is None else line_of(fact.written)
        return (
            f"The step at {step} changes {it}, and {where} sets {it} back before {backward}.",
            "Do that once, before the loop, unless each iteration is meant to begin with the same values.",
        )
    if fact.kind == "cleared":
        return (
            f"Backward leaves a gradient of up to {fact.gradient:.1e}, but it is zero when {step} uses it.",
            f"Which line between {backward} and {step} makes them zero?",
        )
    if fact.kind == "zero":
        return (
            f"Every gradient that {backward} leaves is exactly zero: what the loss is made of does not depend on "
            f"{it}, or its parts cancel.",
            "Ask for the gradient of each term of the loss by itself, with torch.autograd.grad(term, parameters, "
            "retain_graph=True). Terms that are computed twice from the same parameters cancel: detach the one that "
            "is to stay as it was.",
        )
    return _too_little(fact) if fact.kind == "lost" else _idle(fact, it)


def _too_little(fact: UnmovedParameters) -> tuple[str, str]:
    is_half = fact.dtype in ("bfloat16", "float16")
    return (
        f"Their learning rate is {fact.rate:.1e}, their gradients are up to {fact.gradient:.1e}, and their values up "
        f"to {fact.value:.1e}: the step is less than {fact.dtype} can add to them.",
        FLOAT32 if is_half else f"Choose a larger learning rate for them at {line_of(fact.created)}.",
    )


def _idle(fact: UnmovedParameters, it: str) -> tuple[str, str]:
    return (
        f"The gradient is up to {fact.gradient:.1e}, and {fact.method}.step() does not change {it}.",
        f"Change the parameters themselves in step() of {fact.method}, in place and under torch.no_grad(): "
        "p.add_(update), where p = p + update only assigns to a variable."
        if fact.is_own
        else f"Which option of {fact.method} at {line_of(fact.created)} makes its step so small, such as eps?",
    )
