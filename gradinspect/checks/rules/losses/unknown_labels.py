"""Targets that a loss does not know: 0 where it wants 1 and -1, or values outside of 0 and 1."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import SeveralLabels
from gradinspect.checks.facts.values import UnknownLabels
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

LABELS = Rule(
    code="GI355",
    title="the loss does not know these labels",
    summary="The targets of a loss are 0 and 1 where it wants 1 and -1, outside of 0 and 1, or several for one.",
    explanation="cosine_embedding_loss, margin_ranking_loss, hinge_embedding_loss and soft_margin_loss tell two "
    "kinds of examples apart by the targets 1 and -1. A 0 is neither: such examples add a constant or nothing, so "
    "nothing pushes them apart, and the loss looks good. binary_cross_entropy_with_logits wants probabilities: "
    "with a target of -1 or 2 it falls without end as the logits grow. cross_entropy wants one class, or "
    "probabilities that add up to one: with several ones in a row, each pulls its score up against the others, "
    "and the loss cannot come near 0. None raises an error. A 0 among labels of both signs is not reported, nor "
    "is what lies outside of 0 and 1 in a loss with weights or without a reduction.",
    change="""\
  import torch
  from torch import nn

  layer = nn.Linear(8, 4)
  a, b = torch.randn(16, 8), torch.randn(16, 8)
  is_same = torch.arange(16) % 2 == 0
- target = is_same.float()  # 0 for the others
+ target = is_same.float() * 2 - 1
  loss = nn.functional.cosine_embedding_loss(layer(a), layer(b), target)
  loss.backward()
""",
    remedy="Use the labels that the loss is defined on: y * 2 - 1 makes 1 and -1 of 1 and 0.",
)


def label_findings(fact: UnknownLabels) -> Iterator[Finding]:
    """Report labels that a loss does not know."""
    where = line_of(fact.made or fact.used)
    if fact.wants_signs:
        text = (
            f"{fact.loss} wants targets that are 1 or -1, and all that it got are 0 or 1. What is labeled 0 belongs "
            "to neither kind, so nothing pushes these examples apart."
        )
        remedy = f"At {where}, make -1 of 0: target * 2 - 1."
    else:
        text = (
            f"{fact.loss} wants targets between 0 and 1, and got some from {fact.least:.4g} to {fact.most:.4g}. The "
            "loss falls without end as the logits grow."
        )
        signs = fact.least == -1 and fact.most == 1
        remedy = f"At {where}, " + ("make 0 of -1: (target + 1) / 2." if signs else "scale the targets to 0 and 1.")
    yield LABELS.finding(
        text=text,
        places=(*place_of("labels", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=remedy,
    )


def several_findings(fact: SeveralLabels) -> Iterator[Finding]:
    """Report rows with several labels where one class is wanted."""
    yield LABELS.finding(
        text=f"cross_entropy wants one class for each row, and {fact.num_several:,} of {fact.num_rows:,} rows have "
        f"several ones, up to {fact.most:,}. Their scores are pulled up against each other.",
        places=(*place_of("labels", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=f"At {line_of(fact.used)}, use binary_cross_entropy_with_logits, which asks for each label by itself.",
    )


JUDGE = Judge(UnknownLabels, label_findings)
SEVERAL_JUDGE = Judge(SeveralLabels, several_findings)
