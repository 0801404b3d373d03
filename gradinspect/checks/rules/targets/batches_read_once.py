"""Batches that are there in the first epoch only."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import BatchesReadOnce
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

READ_ONCE = Rule(
    code="GI397",
    title="later epochs have no batches",
    summary="The loop over batches goes through an iterator that was made before the loop over epochs.",
    explanation="zip(), map(), enumerate(), a generator and iter(loader) can be gone through once. Made before the "
    "loop over epochs, such an iterator is empty after the first epoch: the loop over batches does nothing in the "
    "others, without an error, and the last loss is printed again and again. A list, or the DataLoader itself, can be "
    "gone through as often as needed.",
    change="""\
  import torch
  from torch import nn

  model, x = nn.Linear(8, 1), torch.randn(80, 8)
  y = x.sum(1, keepdim=True)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
- batches = zip(x.split(8), y.split(8))  # for one epoch
+ batches = list(zip(x.split(8), y.split(8)))
  for epoch in range(3):
      for a, b in batches:
          optimizer.zero_grad()
          loss = (model(a) - b).square().mean()
          loss.backward()
          optimizer.step()
""",
    remedy="Keep the batches in a list, or make the iterator in each epoch.",
)


def read_once_findings(fact: BatchesReadOnce) -> Iterator[Finding]:
    """Report a loop that finds nothing from the second round on."""
    made = line_of(fact.made)
    yield READ_ONCE.finding(
        text=f"{fact.name} = {fact.value} at {made} can be gone through once. The loop at {line_of(fact.loop)} does so "
        f"in the first round of the loop at {line_of(fact.outer)}, and finds nothing in the others.",
        places=(*place_of("made", fact.made), *place_of("read", fact.loop)),
        remedy=f"At {made}, make {fact.name} a list, or move that line into the loop of {line_of(fact.outer)}.",
    )


JUDGE = Judge(BatchesReadOnce, read_once_findings)
