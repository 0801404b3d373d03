"""Copies of a model that follow its parameters and not its buffers."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import LaggingBuffers
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

LAGGING = Rule(
    code="GI385",
    title="a copy follows the parameters and not the buffers",
    summary="The parameters of a moving average or a target follow the model's, and its running statistics never do.",
    explanation="parameters() does not return buffers, such as the running mean and variance of a batch norm. A copy "
    "that is updated by a loop over parameters() keeps the buffers it was made with, often a mean of 0 and a variance "
    "of 1, and in eval mode its layers normalize by them: its outputs have little to do with those of the model. "
    "Reported if the buffers of the model change, those of the copy do not while its parameters do, and the copy is "
    "called in eval mode. An average that is called only after it got its statistics is not reported.",
    change="""\
  import copy

  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
  average = copy.deepcopy(model).eval().requires_grad_(False)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(9):
      x = torch.randn(5, 8) + 3
      loss = (model(x) - average(x)).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      with torch.no_grad():
          for kept, p in zip(average.parameters(), model.parameters()):
              kept.lerp_(p, 0.1)
+         for kept, b in zip(average.buffers(), model.buffers()):
+             kept.copy_(b)
""",
    remedy="Copy the buffers, too, wherever the parameters of the copy are updated.",
)


def lagging_findings(fact: LaggingBuffers) -> Iterator[Finding]:
    """Report a copy whose buffers never change."""
    where = line_of(fact.followed)
    by = f", by {where}" if fact.followed is not None else ""
    yield LAGGING.finding(
        text=f"A copy of {fact.model} follows its parameters{by}, but not its buffers: {listed(fact.names)} "
        f"{'change' if len(fact.names) > 1 else 'changes'} in the model and never in the copy, which is called in eval "
        "mode and computes with the values that it was made with.",
        places=place_of("updated", fact.followed),
        remedy=f"Let the buffers of the copy follow, too{f', after {where}' if fact.followed is not None else ''}: "
        "for kept, new in zip(average.buffers(), model.buffers()): kept.copy_(new).",
        subjects=fact.names,
    )


JUDGE = Judge(LaggingBuffers, lagging_findings)
