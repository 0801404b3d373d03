"""Places of a sequence that are all given the same entry of a table."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import SamePlaces
from gradinspect.checks.findings import Finding, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

SAME = Rule(
    code="GI712",
    title="all places of a sequence get the same position",
    summary="The index into a table of positions has one value, so what is looked up says nothing about the order.",
    explanation="A table of positions has an entry for each place of a sequence, and arange(length) is its index. With "
    "length - 1, or zeros, one entry is added to all tokens, and the others are never trained. Reported where the "
    "program makes such an index itself, in each of three calls or more, of a table with at least as many entries as "
    "the sequences that are looked up beside it have places, and where no other lookup goes by arange. Where time is "
    "axis 0 of the tokens, and the batch axis 1, the index needs an axis for the batch: arange(length).unsqueeze(1).",
    change="""\
  import torch
  from torch import nn

  words, positions = nn.Embedding(20, 8), nn.Embedding(16, 8)
  layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
  for _ in range(3):
      tokens = torch.randint(0, 20, (4, 6))
-     places = torch.tensor(tokens.size(1) - 1)  # the last place, for all
+     places = torch.arange(tokens.size(1))
      x = words(tokens) + positions(places)
      layer(x).square().mean().backward()
""",
    remedy="Use arange(length) as the index.",
)


def same_findings(fact: SamePlaces) -> Iterator[Finding]:
    """Report an index with one value."""
    yield SAME.finding(
        text=f"The index has one value in each of {fact.num_calls} calls, and it was {fact.value} in the last one: all "
        f"places of the tokens {format_shape(fact.tokens)} get the same of {fact.num_entries:,} entries, and no other "
        "lookup tells the places apart.",
        places=(
            *place_of("made", fact.made), *place_of("used", None if fact.looked_up == fact.made else fact.looked_up),
        ),
        remedy="If this is the table of positions, make the index with torch.arange(length of the sequences).",
    )  # fmt: skip


JUDGE = Judge(SamePlaces, same_findings)
