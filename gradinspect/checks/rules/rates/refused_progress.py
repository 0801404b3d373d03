"""Numbers that get better, told to a scheduler that waits for the other direction."""

from collections.abc import Iterator

from gradinspect.checks.facts.rates import ProgressRefused
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

REFUSED = Rule(
    code="GI392",
    title="the scheduler takes progress for a plateau",
    summary="ReduceLROnPlateau is told a loss in mode 'max', or an accuracy in mode 'min'.",
    explanation="ReduceLROnPlateau(mode='min'), the default, wants a number that falls, and mode='max' one that rises. "
    "In the wrong mode each improvement counts as none: after `patience` calls the learning rate is divided, again and "
    "again, while training goes well. Reported if the name of the number says which way it is to move, or that of what "
    "it is computed from, three new best values were refused, and at most half as many numbers were taken for "
    "progress.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
-     optimizer, mode="max", patience=2
+     optimizer, mode="min", patience=2
  )
  x = torch.randn(16, 8)
  for _ in range(8):
      loss = model(x).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      scheduler.step(loss.item())
""",
    remedy="Use mode='min' for a loss and mode='max' for an accuracy.",
)


def refused_findings(fact: ProgressRefused) -> Iterator[Finding]:
    """Say how the number moved, and what the scheduler looks for."""
    wanted, moved = ("max", "rose") if fact.mode == "min" else ("min", "fell")
    made = "" if fact.made is None else f" at {line_of(fact.made)}"
    yield REFUSED.finding(
        text=f"{fact.metric} {moved} from {fact.first:.3g} to {fact.last:.3g}. ReduceLROnPlateau has mode="
        f"'{fact.mode}', so {fact.num_records} new best values counted as no progress, for which it divides the "
        f"learning rate of {fact.optimizer}.",
        places=(*place_of("scheduler", fact.made), *place_of("told", fact.scheduled)),
        remedy=f"Make ReduceLROnPlateau{made} with mode='{wanted}'.",
    )


JUDGE = Judge(ProgressRefused, refused_findings)
