"""Samples that a dataset changes in place, again in each epoch."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import ChangedSamples
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

CHANGED_SAMPLES = Rule(
    code="GI386",
    title="a dataset changes its samples again in each epoch",
    summary="__getitem__ writes to its own data in place, and writes to it again when the sample is asked for again.",
    explanation="self.data[i] is a view of the data. x -= mean, x.mul_() and transforms with inplace=True "
    "change the data itself, so that the next epoch normalizes what is normalized already, or adds noise to noise. The "
    "samples drift away from those that the model is evaluated on. Reported where a line finds several samples as they "
    "were left, and changes them again; not where that leaves the values as they are, nor where a buffer is filled: "
    "x.copy_(y).",
    change="""\
  import torch
  from torch import nn
  from torch.utils.data import DataLoader, Dataset

  class Images(Dataset):
      def __init__(self):
          self.data = torch.randn(8, 4) + 5
      def __len__(self):
          return 8
      def __getitem__(self, i):
-         x = self.data[i]
+         x = self.data[i].clone()
          x -= 5
          return x

  model, images = nn.Linear(4, 1), Images()
  for epoch in range(3):
      for x in DataLoader(images, 4):
          model(x).square().mean().backward()
""",
    remedy="Copy the sample first, self.data[i].clone(), or compute a new tensor: x = x - mean.",
)


def changed_samples_findings(fact: ChangedSamples) -> Iterator[Finding]:
    """Report a line that changes samples again."""
    yield CHANGED_SAMPLES.finding(
        text=f"{line_of(fact.written)} changes samples in the memory of the dataset. {fact.num_times:,} times it found "
        "one as it was left in an earlier epoch, and changed it once more.",
        places=place_of("written", fact.written),
        remedy=f"Take a clone() of the sample before {line_of(fact.written)}, or compute a new tensor there: "
        "x = x + y, not x += y.",
    )


JUDGE = Judge(ChangedSamples, changed_samples_findings)
