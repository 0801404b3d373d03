"""Schedules of epochs that are stepped for each batch, and of batches that are stepped for each epoch."""

from collections.abc import Iterator

from gradinspect.checks.facts.rates import OtherPace, PlateauOfBatches
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

PACE = Rule(
    code="GI393",
    title="the schedule is stepped at another pace than it was made for",
    summary="Its length counts epochs and it is stepped for each batch, or the other way round.",
    explanation="A schedule knows no epochs, it counts calls of step(). CosineAnnealingLR with T_max=epochs that is "
    "stepped after each batch reaches its end within the first epochs, and then goes up and down again. MultiStepLR "
    "is through with all its milestones then. OneCycleLR with steps_per_epoch=len(loader) that is stepped once per "
    "epoch stays at the beginning of its warm-up. Reported if T_max is what a loop of the program counts to, and a "
    "half more steps were made; if a loop over epochs has as many passes as the last milestone, or as step_size, and "
    "all drops, or three of StepLR, by a half or more, are over in its first third; or if the length was computed from "
    "len(...), and the optimizer steps the same number of times before each step of the scheduler, by which the length "
    "can be divided. A step of the scheduler within a loop over batches is one for each batch. ReduceLROnPlateau is "
    "reported if it is told, in a loop over batches, the loss of each one, and its patience is 20 or less: the losses "
    "of batches go up and down, so it takes chance for a plateau.",
    change="""\
  import torch
  from torch import nn
  from torch.optim.lr_scheduler import CosineAnnealingLR

  epochs = 4
  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
  for epoch in range(epochs):
      for _ in range(5):
          loss = model(torch.randn(5, 8)).square().mean()
          optimizer.zero_grad()
          loss.backward()
          optimizer.step()
-         scheduler.step()  # for each batch
+     scheduler.step()
""",
    remedy="Step the scheduler as often as its length counts.",
    explains=("GI381",),
)


def pace_findings(fact: OtherPace) -> Iterator[Finding]:
    """Say what the length counts, and how often it was stepped."""
    line = line_of(fact.scheduled)
    if fact.num_epochs:
        text = f"{fact.scheduler} was made with {fact.given}, which fits the {fact.num_epochs} passes of the loop at "
        text += f"{line_of(fact.loop)}. {line} calls it once for each step of {fact.optimizer}, so "
        text += "three" if fact.scheduler == "StepLR" else "all"
        text += f" of its drops are over in pass {fact.epoch}."
        remedy = f"Move {line} out of the loop over the batches, so that it is called once per epoch."
    elif fact.counts == "epochs":
        text = f"{fact.scheduler} was made with {fact.given}, which is what a loop counts to, and reached its end after"
        text += f" {fact.length} calls of step(). {line} has called it {fact.num_scheduled} times, once for each step"
        text += f" of {fact.optimizer}: the learning rate goes up and down again."
        remedy = f"Move {line} out of the loop over the batches, so that it is called once per epoch."
    else:
        each = fact.num_steps // fact.num_scheduled
        text = f"{fact.scheduler} was made for {fact.length:,} steps ({fact.given}). {line} calls it once for each "
        text += f"{each} steps of {fact.optimizer}, so it ends at 1/{each} of its way."
        remedy = f"Move {line} into the loop over the batches, after the optimizer's step()."
    yield PACE.finding(
        text=text,
        places=(*place_of("scheduler", fact.made), *place_of("stepped", fact.scheduled)),
        remedy=remedy,
    )


def plateau_findings(fact: PlateauOfBatches) -> Iterator[Finding]:
    """Say what the scheduler is told, and what it makes of it."""
    line = line_of(fact.scheduled)
    yield PACE.finding(
        text=f"{line} tells ReduceLROnPlateau {fact.loss}, the loss of one batch, after each step of {fact.optimizer} "
        f"({fact.num_told} times). Its patience of {fact.patience} is one for epochs: the losses of batches go up and "
        f"down, so {fact.patience + 1} of them without a new low are chance, and the learning rate is divided.",
        places=(*place_of("scheduler", fact.made), *place_of("stepped", fact.scheduled)),
        remedy=f"Move {line} out of the loop over the batches, and give it the loss of the whole epoch.",
    )


PLATEAUS = Judge(PlateauOfBatches, plateau_findings)
JUDGE = Judge(OtherPace, pace_findings)
