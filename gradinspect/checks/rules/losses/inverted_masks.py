"""Masks that hide the tokens and leave the padding."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import InvertedMask
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

MASK = Rule(
    code="GI356",
    title="the mask hides the tokens and leaves the padding",
    summary="A padding mask is given where its opposite is wanted, so that only padding is read.",
    explanation="key_padding_mask of nn.MultiheadAttention and src_key_padding_mask of nn.TransformerEncoder are True "
    "where a position is to be ignored, as the mask of masked_fill; the attn_mask of scaled_dot_product_attention is "
    "True where a position takes part. Given the opposite, each token reads the padding only, and nothing fails. "
    "Reported if in each call with padding all that is left has the same id, at the start or the end of the rows, "
    "and what is hidden has several other ids.",
    change="""\
  import torch
  from torch import nn

  embed = nn.Embedding(9, 8, padding_idx=0)
  attention = nn.MultiheadAttention(8, 2, batch_first=True)
  tokens = torch.tensor([[3, 5, 0, 0], [4, 1, 7, 0], [2, 2, 6, 8]])
  for _ in range(3):
      x = embed(tokens)
-     y, _ = attention(x, x, x, key_padding_mask=tokens != 0)
+     y, _ = attention(x, x, x, key_padding_mask=tokens == 0)
      y[:, 0].square().mean().backward()
""",
    remedy="Pass the opposite of the mask: ~mask.",
    explains=("GI502", "GI601"),
)


def mask_findings(fact: InvertedMask) -> Iterator[Finding]:
    """Say what is left, and where."""
    used = line_of(fact.used)
    lines = [used, *map(line_of, fact.others)]
    made = "" if fact.made in (None, fact.used) else f", made at {line_of(fact.made)},"
    yield MASK.finding(
        text=f"The mask at {used}{made} hides all positions but those with the id {fact.token}, in each of "
        f"{format_count(fact.num_calls, 'call')} with any of them. They are at one end of the rows, as padding is; "
        "what is hidden has several other ids. So nothing but padding is read.",
        places=(
            *place_of("mask", fact.made if made else None),
            *(place for line in (fact.used, *fact.others) for place in place_of("used", line)),
            *place_of("embedded", fact.looked_up),
        ),
        remedy=f"Pass the opposite of the mask at {listed(lines)}: ~(mask) in the place of mask.",
    )


JUDGE = Judge(InvertedMask, mask_findings)
