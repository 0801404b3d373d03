"""A training that draws the first batch of its data again in each step."""

import re
from collections.abc import Iterator

from gradinspect.checks.facts.values import RepeatedBatch
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

_DRAWN = re.compile(r"next\(iter\(([\w.]+)\)\)")

REPEATED = Rule(
    code="GI389",
    title="each step draws the same batch",
    summary="next(iter(loader)) begins anew each time, and without shuffling gives the same batch.",
    explanation="`next(iter(loader))` makes a new iterator and takes its first batch. In a loop, without shuffle=True, "
    "that is the same batch in every step: the loss falls to nothing, and the other data is never seen. With "
    "shuffle=True the batches differ, but the order of all data is drawn anew for each. Reported of a line that has "
    "drawn the first batch at least five times and no other, if the loader has others, and its order is fixed.",
    change="""\
  import torch
  from torch import nn
  from torch.utils.data import DataLoader, TensorDataset

  model = nn.Linear(4, 1)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
  loader = DataLoader(data, batch_size=8)
+ batches = iter(loader)
  for _ in range(6):
-     x, y = next(iter(loader))
+     x, y = next(batches)
      loss = (model(x) - y).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Go through the loader: for x, y in loader.",
)


def repeated_findings(fact: RepeatedBatch) -> Iterator[Finding]:
    """Say how many batches are never seen."""
    where = line_of(fact.drawn)
    found = _DRAWN.search("" if fact.drawn is None else fact.drawn.code)
    loader = "the loader" if found is None else found[1]
    yield REPEATED.finding(
        text=f"{where} begins {loader} anew each time: in each of {fact.num_times:,} times it drew the first of "
        f"{fact.num_batches:,} batches, which is the same since nothing is shuffled. The others are never seen.",
        places=place_of("drawn", fact.drawn),
        remedy=f"Go through all of {loader} instead of {where}: 'for batch in {loader}:' around the step, in a loop "
        "over epochs. Where steps are counted, make the iterator once before the loop, and again when it ends.",
    )


JUDGE = Judge(RepeatedBatch, repeated_findings)
