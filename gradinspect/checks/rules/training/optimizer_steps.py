"""Optimizers that never step, are made anew for each step, have no learning rate, or step after their scheduler."""

from collections.abc import Callable, Iterator

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

NEVER = Rule(
    code="GI365",
    title="the optimizer never steps",
    summary="Gradients are computed and cleared, but no optimizer applies them.",
    explanation="step() is missing, is written without parentheses, or is reached under a condition that never "
    "holds. The loss is computed and backward runs, but the parameters stay as they are. Reported if the "
    "gradients of the optimizer's parameters are cleared without having been read by anything.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(3):
-     optimizer.zero_grad()  # nobody has used the gradients
+     optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
+     optimizer.step()
""",
    remedy="Call optimizer.step() after backward().",
)
ANEW = Rule(
    code="GI366",
    title="the optimizer is made anew for each step",
    summary="A new optimizer is made after each step of the last one, so its state is lost.",
    explanation="Adam, RMSprop and SGD with momentum keep averages of earlier gradients for each parameter. A new "
    "optimizer begins without them: Adam's first step moves every parameter by the learning rate, whatever the "
    "size of its gradient, and momentum never builds up. Plain SGD has no state and is not reported, nor is an "
    "optimizer that steps several times, as in meta-learning.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
+ optimizer = torch.optim.Adam(model.parameters())
  for _ in range(3):
-     optimizer = torch.optim.Adam(model.parameters())  # forgets
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
""",
    remedy="Make the optimizer once, before the loop.",
)
SCHEDULED = Rule(
    code="GI367",
    title="the scheduler steps before the optimizer",
    summary="scheduler.step() is called before optimizer.step(), so the first learning rate is never used.",
    explanation="Since PyTorch 1.1 a scheduler sets the learning rate of the next step. If it steps before the "
    "optimizer has stepped, the first value of the schedule is skipped, and every later one comes a step or an "
    "epoch too early. torch warns once. Several steps of the scheduler in a row, which bring a schedule to "
    "where training was interrupted, are not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
  for _ in range(3):
-     scheduler.step()  # before optimizer.step()
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
+     scheduler.step()
""",
    remedy="Call scheduler.step() after optimizer.step().",
)
ZERO_RATE = Rule(
    code="GI368",
    title="the learning rate is zero",
    summary="Every parameter group has the learning rate 0, so no step changes anything.",
    explanation="A learning rate of 0 comes from a configuration, from an integer division, or from code that is "
    "meant to set it later. Reported if every step that was observed had it, and the optimizer still has it at the "
    "end. An optimizer with a scheduler is reported if the scheduler has stepped five times and no other optimizer "
    "learns either, because a warm-up may begin with 0; one with some groups at 0, which freezes them, is not. A "
    "scheduler that has kept the learning rate at 0 for its first twenty steps is reported as well. A "
    "warm-up is reported if the scheduler steps once per epoch, so that the whole first epoch, of three steps or more, "
    "has the learning rate 0.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
- optimizer = torch.optim.SGD(model.parameters(), lr=1 // 10)  # 0
+ optimizer = torch.optim.SGD(model.parameters(), lr=1 / 10)
  for _ in range(3):
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
""",
    remedy="Pass a positive learning rate.",
)


def _never(fact: OptimizerMisuse) -> Finding:
    where = line_of(fact.scheduled)
    scheduled = "" if fact.scheduled is None else f" The scheduler steps at {where}, which only sets the learning rate."
    before = "" if fact.scheduled is None else f", and before the scheduler's step() at {where}"
    return NEVER.finding(
        text=f"backward at {line_of(fact.backward)} computes gradients of the parameters of {fact.optimizer}, and "
        f"{line_of(fact.cleared)} clears them. {fact.optimizer} has never stepped, so none of them changes.{scheduled}",
        places=(
            *place_of("optimizer", fact.created), *place_of("backward", fact.backward),
            *place_of("scheduler", fact.scheduled), *place_of("cleared", fact.cleared),
        ),
        remedy=f"Call {fact.optimizer}.step() after {line_of(fact.backward)}{before}.",
    )  # fmt: skip


def _anew(fact: OptimizerMisuse) -> Finding:
    return ANEW.finding(
        text=f"{line_of(fact.created)} makes another {fact.optimizer} of the same parameters after each step, so the "
        "state that it keeps for each parameter is lost.",
        places=(*place_of("optimizer", fact.created), *place_of("step", fact.step)),
        remedy=f"Move {line_of(fact.created)} out of the loop, so that it runs once.",
    )


def _scheduled(fact: OptimizerMisuse) -> Finding:
    return SCHEDULED.finding(
        text=f"The scheduler has changed the learning rate at {line_of(fact.scheduled)} before the first step of "
        f"{fact.optimizer}, so the first learning rate of the schedule is skipped.",
        places=(*place_of("scheduler", fact.scheduled), *place_of("step", fact.step)),
        remedy=f"Call the scheduler's step() after {fact.optimizer}.step() at {line_of(fact.step)}, and as often as "
        "now.",
    )


def _zero(fact: OptimizerMisuse) -> Finding:
    why, remedy = "no scheduler changes it", f"Pass a positive learning rate at {line_of(fact.created)}."
    if fact.scheduled is not None:
        where = line_of(fact.scheduled)
        why = f"the scheduler that steps at {where} has kept it there"
        remedy = f"Let the function of the scheduler at {where} return a factor above 0: e / 30, not e // 30."
    text = f"Every parameter group of {fact.optimizer} has the learning rate 0, and {why}. Its steps change nothing."
    if fact.num_steps:
        text = f"The first {fact.num_steps:,} steps of {fact.optimizer} had the learning rate 0 and changed nothing: "
        text += f"{why}."
    return ZERO_RATE.finding(
        text=text,
        places=(
            *place_of("optimizer", fact.created), *place_of("scheduler", fact.scheduled), *place_of("step", fact.step),
        ),
        remedy=remedy,
    )  # fmt: skip


def _late(fact: OptimizerMisuse) -> Finding:
    where = line_of(fact.scheduled)
    return ZERO_RATE.finding(
        text=f"The first {fact.num_steps} steps of {fact.optimizer} had the learning rate 0 and changed nothing. The "
        f"schedule begins with 0, and {where} calls step() for the first time after them: a whole epoch is lost.",
        places=(
            *place_of("optimizer", fact.created), *place_of("scheduler", fact.scheduled), *place_of("step", fact.step),
        ),
        remedy=f"Begin the schedule above 0, as by (epoch + 1) / warmup, or count batches and call {where} for each.",
    )  # fmt: skip


_KINDS: dict[str, Callable[[OptimizerMisuse], Finding]] = {
    "never": _never, "anew": _anew, "scheduled": _scheduled, "zero": _zero, "late": _late,
}  # fmt: skip


def step_findings(fact: OptimizerMisuse) -> Iterator[Finding]:
    """Report what is wrong with an optimizer."""
    if fact.kind in _KINDS:
        yield _KINDS[fact.kind](fact)


JUDGE = Judge(OptimizerMisuse, step_findings)
