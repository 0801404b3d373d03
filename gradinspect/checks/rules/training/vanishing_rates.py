"""Learning rates that a scheduler divides with every step."""

from collections.abc import Iterator
from math import ceil, log

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

TEN_THOUSANDTH = 1.1e-4
VANISHING = Rule(
    code="GI381",
    title="the learning rate vanishes within a few steps",
    summary="A scheduler that is stepped after each batch divides the learning rate each time.",
    explanation="ExponentialLR, StepLR and MultiStepLR count calls of step(), not epochs. A factor that is meant "
    "for an epoch, applied to each batch, brings the learning rate to nothing before the first epoch is over, "
    "and the loss stays where it is. Reported if two steps of a scheduler, with one step of the optimizer before "
    "each, have divided the learning rate by the same number, at least 5; or if it was a ten-thousandth of its largest "
    "value for as many steps of the optimizer as had been made until then, or a thousandth for four times as many; if "
    "it was 0, with which a schedule may end, for three times as many.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.1)
  for epoch in range(2):
      for _ in range(4):
          optimizer.zero_grad()
          loss = model(torch.randn(5, 8)).square().mean()
          loss.backward()
          optimizer.step()
-         scheduler.step()  # for each batch
+     scheduler.step()
""",
    remedy="Call scheduler.step() once per epoch, or choose a factor near 1.",
)


def vanishing_findings(fact: OptimizerMisuse) -> Iterator[Finding]:
    """Say how soon nothing is left of the learning rate."""
    if fact.kind == "falls":
        steps = ceil(round(log(1e-6) / log(fact.ratio), 3))
        yield VANISHING.finding(
            text=f"{line_of(fact.scheduled)} multiplies the learning rate of {fact.optimizer} by {fact.ratio:.2g} each "
            f"time. After {steps} steps it is a millionth of what it was, or less.",
            places=(
                *place_of("made", fact.scheduler),
                *place_of("step", fact.step),
                *place_of("scheduler", fact.scheduled),
            ),
            remedy=f"Call the scheduler's step() once per epoch: move {line_of(fact.scheduled)} out of the loop over "
            "the batches. Or choose a factor near 1.",
        )
    elif fact.kind == "sunken":
        if fact.ratio == 0:
            yield _ended(fact)
            return
        share = "thousandth" if fact.sunken_to > TEN_THOUSANDTH else "ten-thousandth"
        yield VANISHING.finding(
            text=f"{line_of(fact.scheduled)} has brought the learning rate of {fact.optimizer} to a {share} of "
            f"its largest value after {fact.sunken_after} steps, and after {fact.num_steps} steps it is "
            f"{fact.ratio:.1g} times that value. The steps since then changed next to nothing.",
            places=(
                *place_of("made", fact.scheduler),
                *place_of("step", fact.step),
                *place_of("scheduler", fact.scheduled),
            ),
            remedy=f"If the schedule counts epochs, move {line_of(fact.scheduled)} out of the loop over the batches. "
            "If it counts steps, choose a factor nearer to 1, or a longer step_size.",
        )


def _ended(fact: OptimizerMisuse) -> Finding:
    """Say since when there is no learning rate left."""
    return VANISHING.finding(
        text=f"{line_of(fact.scheduled)} has brought the learning rate of {fact.optimizer} from its largest value to 0 "
        f"within {fact.sunken_after} steps, and after {fact.num_steps} steps it is 0 still. The steps since then "
        "changed nothing.",
        places=(
            *place_of("made", fact.scheduler),
            *place_of("step", fact.step),
            *place_of("scheduler", fact.scheduled),
        ),
        remedy=f"If the schedule counts epochs, move {line_of(fact.scheduled)} out of the loop over the batches. "
        "If it counts steps, give it as many as the training has.",
    )


JUDGE = Judge(OptimizerMisuse, vanishing_findings)
