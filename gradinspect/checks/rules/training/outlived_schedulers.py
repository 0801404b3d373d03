"""A scheduler that goes on to set the learning rate of an optimizer which does not step any more."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

OUTLIVED = Rule(
    code="GI382",
    title="the scheduler drives an optimizer that no longer steps",
    summary="A new optimizer steps the same parameters, and the scheduler still belongs to the old one.",
    explanation="A scheduler changes the learning rate of the optimizer that it was made with. When fine-tuning begins "
    "and a new optimizer is made, the old scheduler goes on without an error, and the new optimizer keeps the "
    "learning rate that it began with. Reported if another optimizer steps the same parameters, has no scheduler of "
    "its own, and a scheduler has stepped twice for the one that has not stepped since, or never did.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
  for epoch in range(5):
      if epoch == 2:
          optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
+         scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
      scheduler.step()
""",
    remedy="Make the scheduler again with the new optimizer, or keep the optimizer and use add_param_group().",
)


def outlived_findings(fact: OptimizerMisuse) -> Iterator[Finding]:
    """Say which optimizer the scheduler drives, and which one steps."""
    if fact.kind == "outlived":
        new = line_of(fact.other_created)
        yield OUTLIVED.finding(
            text=f"The scheduler that steps at {line_of(fact.scheduled)} sets the learning rate of the optimizer made "
            f"at {line_of(fact.created)}, which does not step. {fact.other}, made at {new}, steps its "
            "parameters instead, and no scheduler changes its learning rate.",
            places=(
                *place_of("optimizer", fact.created), *place_of("replaced", fact.other_created),
                *place_of("scheduler", fact.scheduled),
            ),
            remedy=f"Make the scheduler again after {new}, with the new optimizer. Or keep the old one, and use its "
            "add_param_group().",
        )  # fmt: skip


JUDGE = Judge(OptimizerMisuse, outlived_findings)
