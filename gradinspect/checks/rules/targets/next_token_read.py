"""Language models that read the token that they are to predict."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import HiddenIgnored, NextTokenRead
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

READ = Rule(
    code="GI330",
    title="the model reads the token that it is to predict",
    summary="Attention without a causal mask, or an RNN of both directions, lets each place read the next token.",
    explanation="Where the labels are the tokens that were given, shifted by one place, the answer at each place "
    "stands at the next one. Attention without a mask and a bidirectional RNN read all places, so the model "
    "learns to copy: the loss falls below what the data allow, and what it writes on its own is nonsense, as "
    "nothing follows the last token then. The labels are compared with the ids that an embedding was given, and "
    "the weights or the mask of the attention are read: reported if each place has a weight for the next one. A "
    "loss that counts the tokens which a masked language model is given, and ignores those that are hidden from "
    "it, asks for no more. A prefix that is read in both directions and a memory of other tokens are not "
    "reported. A layer of torch.nn takes nn.Transformer.generate_square_subsequent_mask(length) for its mask.",
    change="""\
  import torch
  from torch import nn

  embed, head = nn.Embedding(20, 8), nn.Linear(8, 20)
  layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
+ mask = nn.Transformer.generate_square_subsequent_mask(11)
  for _ in range(4):
      ids = torch.randint(20, (4, 12))
-     scores = head(layer(embed(ids[:, :-1])))
+     scores = head(layer(embed(ids[:, :-1]), src_mask=mask))
      loss = nn.functional.cross_entropy(
          scores.flatten(0, 1), ids[:, 1:].flatten()
      )
      loss.backward()
""",
    remedy="Give the attention a causal mask, or let the RNN read in one direction.",
)


def read_findings(fact: NextTokenRead) -> Iterator[Finding]:
    """Report the attention that reads the next token."""
    where = line_of(fact.attended)
    reader = (
        f"{fact.op} at {where} reads in both directions, so each place knows"
        if fact.op
        else (f"attention at {where} lets each place read")
    )
    yield READ.finding(
        text=f"In each of {fact.num_calls} calls, the labels at {line_of(fact.used)} are the tokens that the model is "
        f"given, shifted by one place. The {reader} the next one, which has its label, and the model learns to copy "
        "it.",
        places=(
            *place_of("given", None if fact.looked_up == fact.used else fact.looked_up),
            *place_of("read", fact.attended),
            *place_of("loss", None if fact.used == fact.attended else fact.used),
        ),
        remedy=f"Make the {fact.op} that is called at {where} without bidirectional=True."
        if fact.op
        else f"Hide the later places from the attention at {where}. nn.TransformerEncoder takes the mask "
        "nn.Transformer.generate_square_subsequent_mask(length) as mask=, its layer as src_mask=, "
        "nn.MultiheadAttention as attn_mask=; F.scaled_dot_product_attention takes is_causal=True.",
    )


def hidden_findings(fact: HiddenIgnored) -> Iterator[Finding]:
    """Report a loss that ignores what was hidden."""
    yield READ.finding(
        text=f"In each of {fact.num_calls} calls, {line_of(fact.used)} ignores exactly the places at which the model "
        f"is given the token {fact.token}, and elsewhere the label is the token that it is given: it learns to copy "
        "it, and nothing of what is hidden.",
        places=(
            *place_of("given", None if fact.looked_up == fact.used else fact.looked_up), *place_of("loss", fact.used)
        ),
        remedy="Ignore the tokens that are given, and count those that are hidden: labels[~hidden] = -100.",
    )  # fmt: skip


HIDDEN_JUDGE = Judge(HiddenIgnored, hidden_findings)
JUDGE = Judge(NextTokenRead, read_findings)
