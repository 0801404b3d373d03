"""Weights of classes that add to what is frequent already."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import WeightsOfFrequency
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

INVERTED = Rule(
    code="GI342",
    title="the weights of classes favor what is frequent",
    summary="The weight of a class grows with its number of labels, where it is to make up for it.",
    explanation="weight= of cross_entropy and nll_loss, and pos_weight= of binary_cross_entropy_with_logits, multiply "
    "the loss of each example of a class. To make up for few examples, the weight of a class is to be the inverse of "
    "their number, and pos_weight the number of negative examples divided by that of positive ones. Weights that are "
    "proportional to the numbers do the opposite: the model learns the frequent class alone. Reported if a loss was "
    "given 200 labels or more, one class is three times as frequent as another, and the weights have the proportions "
    "of the labels.",
    change="""\
  import torch
  from torch import nn

  labels = (torch.rand(400) < 0.15).long()
  x = torch.randn(400, 8) + labels[:, None]
  counts = torch.bincount(labels).float()
- weight = counts / counts.sum()  # the frequent class weighs most
+ weight = counts.sum() / counts
  model = nn.Linear(8, 2)
  for _ in range(3):
      loss = nn.functional.cross_entropy(model(x), labels, weight=weight)
      loss.backward()
""",
    remedy="Divide by the numbers of labels instead of multiplying by them.",
)


def weight_findings(fact: WeightsOfFrequency) -> Iterator[Finding]:
    """Report weights, with the two classes that lie furthest apart."""
    name = "pos_weight" if fact.is_positive else "weight"
    where = line_of(fact.made or fact.used)
    inverse = (
        "the number of negative labels divided by that of positive ones"
        if fact.is_positive
        else ("the inverse of the number of its labels, for each class")
    )
    yield INVERTED.finding(
        text=f"{name} of {fact.loss} has the proportions of the labels. Of {fact.num_labels:,} labels, "
        f"{fact.frequent_share:.0%} are {fact.frequent}, which weighs {fact.frequent_weight:.3g}, and "
        f"{fact.rare_share:.0%} are {fact.rare}, which weighs {fact.rare_weight:.3g}. So what is frequent counts even "
        "more.",
        places=(
            *place_of("weights", None if fact.made == fact.used else fact.made),
            *place_of("created", None if fact.layer == fact.made else fact.layer),
            *place_of("loss", fact.used),
        ),
        remedy=f"At {where}, make {name} {inverse}.",
    )


JUDGE = Judge(WeightsOfFrequency, weight_findings)
