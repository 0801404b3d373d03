"""Gradients that are not cleared between two steps, or are cleared before they are used."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import GradientMisuse
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

NOT_CLEARED = Rule(
    code="GI362",
    title="gradients of earlier steps are applied again",
    summary="Nothing clears the gradients after a step, so backward adds to those that were used.",
    explanation="backward adds to .grad. Without zero_grad() the second step uses the sum of the first two "
    "gradients, the third the sum of three, and so on: the updates grow, and the loss oscillates or diverges. It "
    "also happens if zero_grad() is called only once before the loop, once per epoch, on another model or "
    "optimizer, or outside the closure of LBFGS. Accumulating gradients over several backward calls before one "
    "step is not reported, nor is a generator's backward that adds to gradients of the discriminator.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(3):
+     optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
-     loss.backward()  # adds to the gradients of the last step
+     loss.backward()
      optimizer.step()
""",
    remedy="Call optimizer.zero_grad() before each backward that begins a new step.",
)
CLEARED = Rule(
    code="GI363",
    title="gradients are cleared before the step",
    summary="zero_grad is called between backward and step, so gradients are lost.",
    explanation="The order is zero_grad(), backward(), step(), or backward(), step(), zero_grad(). If zero_grad() "
    "comes between backward() and step(), all gradients are None or zero when the optimizer steps. There is no "
    "error, and the parameters do not change, except for momentum and weight decay. If gradients are accumulated "
    "over several backward calls, zero_grad() between them leaves only those of the last call.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(2):
+     optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
-     optimizer.zero_grad()  # before the step
      optimizer.step()
""",
    remedy="Move zero_grad() before backward(), or after step().",
)


def clearing_findings(fact: GradientMisuse) -> Iterator[Finding]:
    """Report gradients that were cleared too late or too early."""
    if fact.uncalled is not None:
        uncalled = line_of(fact.uncalled)
        yield NOT_CLEARED.finding(
            text=f"{uncalled} names zero_grad and does not call it, so nothing clears the gradients that "
            f"{fact.optimizer} has applied at {line_of(fact.step)}, and backward at {line_of(fact.backward)} adds to "
            "them. The next step applies them again.",
            places=(
                *place_of("step", fact.step), *place_of("uncalled", fact.uncalled), *place_of("backward", fact.backward)
            ),
            remedy=f"Add the parentheses at {uncalled}: {fact.uncalled.code.partition('#')[0].strip()}()",
            subjects=fact.names,
        )  # fmt: skip
    elif fact.kind == "added" and fact.cleared is not None and fact.other is None:
        yield NOT_CLEARED.finding(
            text=f"{line_of(fact.cleared)} clears a part of what {fact.optimizer} holds, but not {listed(fact.names)}. "
            f"Their gradients are still there from the step at {line_of(fact.step)}, and backward at "
            f"{line_of(fact.backward)} adds to them. The next step applies them again.",
            places=(
                *place_of("step", fact.step), *place_of("cleared", fact.cleared), *place_of("backward", fact.backward)
            ),
            remedy=f"Call {fact.optimizer}.zero_grad() at {line_of(fact.cleared)}, which clears all of it.",
            subjects=fact.names,
        )  # fmt: skip
    elif fact.kind == "added":
        yield NOT_CLEARED.finding(
            text=f"{fact.optimizer} has applied the gradients at {line_of(fact.step)}, nothing has cleared them since, "
            f"and backward at {line_of(fact.backward)} adds to them. The next step applies them again.",
            places=(*place_of("step", fact.step), *place_of("backward", fact.backward)),
            remedy=f"Call {fact.optimizer}.zero_grad() after {line_of(fact.step)}, in the same loop."
            if fact.other is None
            else f"Call {fact.optimizer}.zero_grad() right before {line_of(fact.backward)}: backward at "
            f"{line_of(fact.other)} leaves gradients there too.",
            subjects=fact.names,
        )
    elif fact.kind == "closure":
        yield NOT_CLEARED.finding(
            text=f"The step at {line_of(fact.step)} calls its closure several times, and backward at "
            f"{line_of(fact.backward)} adds to the gradients of the calls before: nothing clears them in between.",
            places=(*place_of("backward", fact.backward), *place_of("step", fact.step)),
            remedy=f"Call {fact.optimizer}.zero_grad() inside the closure, before {line_of(fact.backward)}.",
            subjects=fact.names,
        )
    elif fact.kind == "cleared":
        cleared = "something" if fact.cleared is None else line_of(fact.cleared)
        yield CLEARED.finding(
            text=f"backward at {line_of(fact.backward)} computes the gradients, {cleared} clears them, and "
            f"{fact.optimizer} steps without any.",
            places=(
                *place_of("backward", fact.backward), *place_of("cleared", fact.cleared), *place_of("step", fact.step),
            ),
            remedy=f"Move the step at {line_of(fact.step)} behind {line_of(fact.backward)}."
            if _steps_first(fact)
            else f"Clear the gradients after {line_of(fact.step)}, or before {line_of(fact.backward)}.",
            subjects=fact.names,
        )  # fmt: skip
    elif fact.kind == "partial":
        yield CLEARED.finding(
            text=f"Backward runs several times for each step, and {line_of(fact.cleared)} clears all that the call at "
            f"{line_of(fact.backward)} has computed before it is used: {fact.optimizer} applies only what later calls "
            "compute.",
            places=(
                *place_of("cleared", fact.cleared), *place_of("backward", fact.backward), *place_of("step", fact.step),
            ),
            remedy=f"Clear the gradients only where {line_of(fact.step)} has just run, not for each backward.",
            subjects=fact.names,
        )  # fmt: skip


def _steps_first(fact: GradientMisuse) -> bool:
    """Return whether the step stands before backward in the same function, so that clearing is at the right place."""
    step, backward = fact.step, fact.backward
    if step is None or backward is None or (step.file, step.function) != (backward.file, backward.function):
        return False
    return step.line < backward.line


JUDGE = Judge(GradientMisuse, clearing_findings)
