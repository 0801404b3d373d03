"""Padding that counts in the mean of a loss."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import CountedPadding
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_share

PADDING = Rule(
    code="GI333",
    title="the loss is mostly one of padding",
    summary="More than half of the labels that cross_entropy averages belong to padded tokens.",
    explanation="Rows of a batch are filled up to one length, and the labels of what fills them are all the same. A "
    "model learns those at once, and the mean of the loss, and its gradient, are then those of padding divided by all "
    "positions: the longer the longest row, the less the tokens count. Reported where the labels of padded tokens are "
    "more than half of all, and the loss ignores none and weighs none. Padded tokens are those of padding_idx, or "
    "without one those of an id that fills up rows of unlike length at one end and is nowhere else in them.",
    change="""\
  import torch
  from torch import nn

  embed, head = nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 9)
- loss_of = nn.CrossEntropyLoss()
+ loss_of = nn.CrossEntropyLoss(ignore_index=0)
  for _ in range(4):
      tokens = torch.randint(1, 9, (4, 12))
      tokens[:, 4:] = 0
      loss_of(head(embed(tokens)).flatten(0, 1), tokens.flatten()).backward()
""",
    remedy="Pass the label of padding as ignore_index.",
)


def padding_findings(fact: CountedPadding) -> Iterator[Finding]:
    """Report the share of padding."""
    share, where = format_share(fact.num_padding, fact.num_all), line_of(fact.used)
    made = line_of(fact.layer or fact.used)
    tokens = "those of an embedding with padding_idx"
    if fact.filler is not None:
        tokens = f"id {fact.filler} fills up the rows, and is nowhere else in them"
    remedy = f"Give the loss of {made} ignore_index={fact.label}. To learn where rows end, keep one a row."
    if fact.is_of_tokens:
        remedy = f"Fill up the labels with -100, which {where} ignores: other tokens have the label {fact.label}, too."
    yield PADDING.finding(
        text=f"{share} of the labels that {where} averages in {fact.num_calls} calls are {fact.label}, which is the "
        f"label of padded tokens: {tokens}. Its mean is mostly that of padding.",
        places=(*place_of("layer", fact.layer), *place_of("loss", fact.used)),
        remedy=remedy,
    )


JUDGE = Judge(CountedPadding, padding_findings)
