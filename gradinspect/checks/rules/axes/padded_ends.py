"""The last step of rows that end in padding."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import PaddedEnds
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

PADDED_ENDS = Rule(
    code="GI711",
    title="the last step of an RNN is that of padding",
    summary="out[:, -1] of padded rows is the last step of the longest; of the others it is made of padding.",
    explanation="pad_sequence() fills shorter rows up at their end, and an RNN runs over what was filled up, too: it "
    "forgets with each such step, so out[:, -1] of a short row says little about its tokens. The loss falls on long "
    "rows. Reported where a line takes the last step in every call, of an RNN that is given the rows of an embedding, "
    "at least a quarter of them end in padding, and no line takes other steps of it.",
    change="""\
  import torch
  from torch import nn

  embed, head = nn.Embedding(9, 8, padding_idx=0), nn.Linear(16, 1)
  rnn = nn.GRU(8, 16, batch_first=True)
  tokens = torch.tensor([[3, 5, 7, 2], [4, 0, 0, 0]])
  lengths, y = torch.tensor([4, 1]), torch.randn(2, 1)
  for _ in range(2):
      out, _ = rnn(embed(tokens))
-     last = out[:, -1]
+     last = out[torch.arange(len(out)), lengths - 1]
      loss = (head(last) - y).square().mean()
      loss.backward()
""",
    remedy="Take the last token of each row, out[torch.arange(len(out)), lengths - 1], or pack the rows.",
)


def padded_ends_findings(fact: PaddedEnds) -> Iterator[Finding]:
    """Report a line that takes the last step of padded rows."""
    taken = "out[torch.arange(len(out)), lengths - 1]"
    if not fact.is_batch_first:
        taken = "out[lengths - 1, torch.arange(out.shape[1])]"
    yield PADDED_ENDS.finding(
        text=f"{fact.num_padded:,} of {fact.num_rows:,} rows that {fact.op} got at {line_of(fact.ran)} end in padding, "
        f"token {fact.padding}. {line_of(fact.used)} takes the last step of each: there, what {fact.op} has made of "
        "padding.",
        places=(*place_of("ran", fact.ran if fact.ran != fact.used else None), *place_of("taken", fact.used)),
        remedy=f"At {line_of(fact.used)}, take the step of the last token of each row: {taken}, where lengths has the "
        f"number of tokens of each row. Or give {fact.op} the rows packed, by pack_padded_sequence().",
    )


JUDGE = Judge(PaddedEnds, padded_ends_findings)
