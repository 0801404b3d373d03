"""Positions that are added along the batch."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import BatchPositions
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

POSITIONS = Rule(
    code="GI707",
    title="positions are counted along the batch",
    summary="A table of positions is sliced by the size of the batch, so all places of a sequence get the same entry.",
    explanation="A table of shape [length, 1, features] is made for batches with time on axis 0. Given [batch, time, "
    "features], pe[: x.size(0)] has an entry for each example, and broadcasts it over time. An attention sees no order "
    "then, and what an example is given depends on its place in the batch. The shapes fit, and nothing raises.",
    change="""\
  import torch
  from torch import nn

  layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
  pe = torch.randn(50, 1, 8)  # [length, 1, features]
  for _ in range(3):
      x = torch.randn(4, 6, 8)
-     x = x + pe[: x.size(0)]  # an entry for each example
+     x = x + pe[: x.size(1)].transpose(0, 1)
      layer(x).square().mean().backward()
""",
    remedy="Slice the table by the length of the sequences, and bring that axis to place 1.",
)


def position_findings(fact: BatchPositions) -> Iterator[Finding]:
    """Report a table that is sliced along the batch."""
    yield POSITIONS.finding(
        text=f"A table {format_shape(fact.table)} is added to {format_shape(fact.shape)}, in each of {fact.num_calls} "
        f"calls. The attention takes axis 1 for the sequence: all {fact.shape[1]} places of a sequence get the same "
        "entry, and each example of the batch another one.",
        places=(*place_of("added", fact.added), *place_of("attention", None if fact.used == fact.added else fact.used)),
        remedy=f"At {line_of(fact.added)}, slice the table by x.size(1), and transpose(0, 1) what you get.",
    )


JUDGE = Judge(BatchPositions, position_findings)
