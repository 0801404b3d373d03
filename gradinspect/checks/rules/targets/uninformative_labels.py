"""Labels that are all the same, or that the model has chosen itself."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import EqualLabels, OwnLabels
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

EQUAL = Rule(
    code="GI323",
    title="all labels are the same",
    summary="Every label that a loss was given has one value, so there is nothing to tell apart.",
    explanation="A loss on labels that never vary falls quickly: the model learns one answer. Labels that come "
    "out of the data or of a draw are to tell examples apart. torch.randint(0, 1, ...) draws nothing but 0, as its "
    "upper end is left out; a comparison may hold of all; a column may have been taken twice. Silent where the program "
    "makes labels as zeros or ones, as for a discriminator, where another line has nothing but another value, or where "
    "fewer than 64 were seen.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 2)
  for _ in range(6):
-     y = torch.randint(0, 1, (32,))  # 1 is left out
+     y = torch.randint(0, 2, (32,))
      nn.functional.cross_entropy(model(torch.randn(32, 8)), y).backward()
""",
    remedy="Look at where the labels come from.",
)
OWN = Rule(
    code="GI324",
    title="the labels are the model's own answers",
    summary="A loss compares scores with the largest of the same scores, so whatever the model answers is right.",
    explanation="argmax of the scores, given to a loss of the same scores as their labels, makes the model surer of "
    "what it answers, whatever that is. The loss falls towards zero, and no label of the data is read. Silent where "
    "another loss of the program has other labels, as where unlabeled examples are used beside labeled ones.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 3)
  for _ in range(6):
      x = torch.randn(32, 8)
      y = x[:, :3].argmax(1)
      scores = model(x)
-     loss = nn.functional.cross_entropy(scores, scores.argmax(1))
+     loss = nn.functional.cross_entropy(scores, y)
      loss.backward()
""",
    remedy="Pass the labels of the data.",
)


def equal_findings(fact: EqualLabels) -> Iterator[Finding]:
    """Report labels of one value."""
    yield EQUAL.finding(
        text=f"All {fact.num_labels:,} labels that {fact.loss} got in {fact.num_calls} calls are {fact.value:g}.",
        places=(*place_of("labels", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=f"Look at where {line_of(fact.made or fact.used)} takes the labels from. The upper end of "
        "torch.randint() is left out.",
    )


def own_findings(fact: OwnLabels) -> Iterator[Finding]:
    """Report labels that the model has chosen."""
    yield OWN.finding(
        text=f"In each of {fact.num_calls} calls, the labels are the {fact.op} of the very scores that the loss "
        "compares with them. No label of the data is read.",
        places=(*place_of("labels", None if fact.made == fact.used else fact.made), *place_of("loss", fact.used)),
        remedy=f"At {line_of(fact.used)}, pass the labels of the data.",
    )


EQUAL_JUDGE = Judge(EqualLabels, equal_findings)
OWN_JUDGE = Judge(OwnLabels, own_findings)
