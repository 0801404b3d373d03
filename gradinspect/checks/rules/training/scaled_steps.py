"""Steps with gradients that a GradScaler has multiplied."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import GradientMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

SCALED = Rule(
    code="GI369",
    title="the optimizer applies scaled gradients",
    summary="A GradScaler scaled the loss, and the optimizer steps without dividing the gradients again.",
    explanation="scaler.scale(loss) multiplies the loss, by 65,536 to begin with, so that small gradients do not "
    "vanish in float16. scaler.step(optimizer) divides the gradients by the same factor, and leaves a step out "
    "if they are not finite. optimizer.step() knows nothing of it: with SGD each update is 65,536 times too "
    "large; with Adam the factor cancels, until a gradient overflows. There is no error.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scaler = torch.amp.GradScaler("cpu")
  for _ in range(2):
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      scaler.scale(loss).backward()
-     optimizer.step()  # of gradients 65,536 times too large
+     scaler.step(optimizer)
+     scaler.update()
""",
    remedy="Replace optimizer.step() by scaler.step(optimizer).",
    explains=("GI501", "GI502", "GI503"),
)


def scaled_findings(fact: GradientMisuse) -> Iterator[Finding]:
    """Report a step that the scaler does not make."""
    if fact.kind == "unscaled":
        yield SCALED.finding(
            text=f"A GradScaler has multiplied the loss of backward at {line_of(fact.backward)}, and "
            f"{line_of(fact.step)} applies the gradients as they are: nothing divides them by the scale.",
            places=(*place_of("backward", fact.backward), *place_of("step", fact.step)),
            remedy=f"Replace the step at {line_of(fact.step)} by step({fact.optimizer}) of the GradScaler.",
            subjects=fact.names,
        )


JUDGE = Judge(GradientMisuse, scaled_findings)
