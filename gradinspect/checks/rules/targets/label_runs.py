"""Batches that have one class each, in the order of the classes."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import LabelRuns
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

RUNS = Rule(
    code="GI334",
    title="the batches come in the order of the classes",
    summary="Nearly all labels of a batch are one class, for several batches in a row, and then those of another one.",
    explanation="Data that are kept class by class, and cut into batches without being shuffled, teach the model one "
    "class at a time: each run of batches moves all outputs to its class and undoes what the others have taught. The "
    "loss is low within a run and jumps at its end, units die, and BatchNorm keeps the statistics of the last class. A "
    "shuffle buffer that is smaller than a class changes little. Reported if the labels of other classes in a batch "
    "are at most 40% of what they are in all data, on average over six batches or more of at least 8 labels, and a "
    "class stays for two batches or more. Silent where each class begins with a pass of a loop around the batches, as "
    "where tasks are learned one after the other.",
    change="""\
  import torch
  from torch import nn
  from torch.utils.data import DataLoader, TensorDataset

  y = torch.arange(3).repeat_interleave(48)  # class by class
  x = torch.randn(144, 8) + y[:, None]
  model = nn.Linear(8, 3)
- loader = DataLoader(TensorDataset(x, y), batch_size=16)
+ loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
  for batch, labels in loader:
      loss = nn.functional.cross_entropy(model(batch), labels)
      loss.backward()
""",
    remedy="Shuffle the examples before they are cut into batches.",
    explains_gradients=True,
    explains=("GI323",),
)


def run_findings(fact: LabelRuns) -> Iterator[Finding]:
    """Report labels that come one class at a time."""
    used = line_of(fact.used)
    taken = f" The DataLoader made at {line_of(fact.loader)} takes them in the order of its dataset."
    taken = "" if fact.loader is None else taken
    yield RUNS.finding(
        text=f"In {fact.num_calls} calls of {fact.loss} at {used}, {fact.share:.0%} of the labels of a batch are one "
        f"class, on average. The {fact.num_kinds} classes follow each other: one stays for "
        f"{fact.num_calls / fact.num_runs:.0f} batches of about {fact.labels} labels, then comes the next.{taken}",
        places=(
            *place_of("loader", fact.loader),
            *place_of("labels", None if fact.made == fact.used or fact.loader is not None else fact.made),
            *place_of("loss", fact.used),
        ),
        remedy="Shuffle the examples before they become batches: shuffle=True, torch.randperm(n), or a buffer beyond a "
        "class.",
    )


JUDGE = Judge(LabelRuns, run_findings)
