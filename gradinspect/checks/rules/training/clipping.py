"""Gradient clipping that has no effect, or an arbitrary one."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import EmptiedIterator, GradientMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

CLIPPING = Rule(
    code="GI364",
    title="gradients are clipped at the wrong moment",
    summary="Clipping comes before backward, after the step, or while the gradients are still scaled.",
    explanation="clip_grad_norm_ and clip_grad_value_ change the gradients that are there when they are called. "
    "Before backward() or after step(), these are none, or old ones, so the step applies gradients that were never "
    "clipped. With a GradScaler, gradients are multiplied by a large scale until the scaler's step(): a limit that "
    "is applied before then cuts nearly all of each gradient away. Call scaler.unscale_(optimizer) first. An iterator "
    "over the parameters, such as filter(...), is empty once an optimizer has gone through it: nothing is clipped.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(2):
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
-     nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # no gradients yet
      loss.backward()
+     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
      optimizer.step()
""",
    remedy="Clip between backward() and step(), with a GradScaler after scaler.unscale_(optimizer).",
    explains=("GI601",),  # a step that was not clipped leaves dead units
)


def clipping_findings(fact: GradientMisuse) -> Iterator[Finding]:
    """Report clipping that the next step does not see."""
    clipped, backward = place_of("clipped", fact.clipped), place_of("backward", fact.backward)
    step = place_of("step", fact.step)
    if fact.kind == "early":
        yield CLIPPING.finding(
            text=f"{line_of(fact.clipped)} clips before backward computes the gradients at {line_of(fact.backward)}, "
            f"so {fact.optimizer} applies gradients that were not clipped.",
            places=(*clipped, *backward, *step),
            remedy=f"Clip between backward at {line_of(fact.backward)} and the step at {line_of(fact.step)}.",
        )
    elif fact.kind == "late":
        yield CLIPPING.finding(
            text=f"{line_of(fact.clipped)} clips when {fact.optimizer} has applied the gradients already.",
            places=(*backward, *step, *clipped),
            remedy=f"Clip between backward at {line_of(fact.backward)} and the step at {line_of(fact.step)}.",
        )
    elif fact.kind == "scaled":
        yield CLIPPING.finding(
            text=f"{line_of(fact.clipped)} clips gradients that a GradScaler has scaled; they are unscaled only at "
            f"{line_of(fact.unscaled)}. Compared with them, the limit is far too small.",
            places=(*backward, *clipped, *place_of("unscaled", fact.unscaled)),
            remedy=f"Call unscale_(optimizer) of the GradScaler before {line_of(fact.clipped)}.",
        )


JUDGE = Judge(GradientMisuse, clipping_findings)


def emptied_findings(fact: EmptiedIterator) -> Iterator[Finding]:
    """Report clipping that was given nothing."""
    where = line_of(fact.clipped)
    remedy = f"Make a list of the parameters before {fact.name} is first used, and pass that at {where}."
    if fact.made is not None:
        remedy = f"Make a list at {line_of(fact.made)}: {fact.name} = list({fact.value})."
    yield CLIPPING.finding(
        text=f"{where} clips nothing: {fact.name} is an iterator, and something has gone through it before, so it "
        "gives no parameters any more.",
        places=(*place_of("made", fact.made), *place_of("clipped", fact.clipped)),
        remedy=remedy,
        subjects=(fact.name,),
    )


EMPTIED_JUDGE = Judge(EmptiedIterator, emptied_findings)
