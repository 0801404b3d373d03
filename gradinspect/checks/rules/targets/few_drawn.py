"""A sampler that has one weight for each class where it wants one for each example."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import FewDrawn
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

FEW_DRAWN = Rule(
    code="GI396",
    title="a sampler draws the first examples only",
    summary="WeightedRandomSampler has fewer weights than there are examples, so all others are never drawn.",
    explanation="WeightedRandomSampler draws indices of its weights, which are those of examples. Given one weight for "
    "each class, it draws the indices 0, 1 and 2 of three classes: every batch consists of the first three examples. "
    "There is no error, and the loss soon falls to zero. The weight of an example is that of its class: weights[y].",
    change="""\
  import torch
  from torch import nn
  from torch.utils.data import DataLoader, TensorDataset
  from torch.utils.data import WeightedRandomSampler

  torch.manual_seed(0)
  x = torch.randn(200, 8)
  y = (x[:, 0] > 1).long()
  weights = 1 / torch.bincount(y)
- sampler = WeightedRandomSampler(weights, len(y))  # of two classes
+ sampler = WeightedRandomSampler(weights[y], len(y))
  model = nn.Linear(8, 2)
  for a, b in DataLoader(TensorDataset(x, y), batch_size=50, sampler=sampler):
      loss = nn.functional.cross_entropy(model(a), b)
      loss.backward()
""",
    remedy="Give the sampler a weight for each example: that of its class.",
    explains_gradients=True,
)


def drawn_findings(fact: FewDrawn) -> Iterator[Finding]:
    """Report examples that are never drawn."""
    where = line_of(fact.sampler or fact.loader)
    others = "a batch has more examples" if fact.num_examples is None else f"there are {fact.num_examples:,} examples"
    yield FEW_DRAWN.finding(
        text=f"The sampler has {fact.num_weights:,} weights, and {others}: it draws the first {fact.num_weights:,} of "
        "them again and again, and never the others.",
        places=(*place_of("sampler", fact.sampler), *place_of("loader", fact.loader)),
        remedy=f"At {where}, give the sampler a weight for each example: that of its class, as weights[labels] is.",
    )


JUDGE = Judge(FewDrawn, drawn_findings)
