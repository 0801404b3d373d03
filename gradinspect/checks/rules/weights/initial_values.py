"""Values that were set, and that an initialization has overwritten before the training."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import FilledPadding, OverwrittenValues
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

INITIALIZED = Rule(
    code="GI384",
    title="values that were set are initialized again",
    summary="An initialization overwrites what was loaded, or the padding row, before anything has read it.",
    explanation="Model.apply(init) and loops over parameters() initialize everything, whatever was there: pretrained "
    "vectors that the constructor has copied, a checkpoint that was loaded, the zeros in the padding row of an "
    "embedding, which no gradient ever changes. Reported if nothing is left of the matrices that one line has copied, "
    "and nothing has read them; and if the padding row is looked up and is not zero, and the last to write the whole "
    "table was a random initialization. A head that is initialized again after a checkpoint was loaded is not "
    "reported.",
    change="""\
  import torch
  from torch import nn

  pretrained = torch.arange(80.0).view(20, 4)
  model = nn.Sequential(nn.Embedding(20, 4), nn.Linear(4, 2))
- model[0].weight.data.copy_(pretrained)
  for parameter in model.parameters():
      nn.init.normal_(parameter, std=0.02)
+ model[0].weight.data.copy_(pretrained)
  loss = model(torch.randint(20, (8,))).square().mean()
  loss.backward()
""",
    remedy="Initialize first, and set or load values after that.",
)


def overwritten_findings(fact: OverwrittenValues) -> Iterator[Finding]:
    """Say which line has overwritten what another has set."""
    is_one = fact.num_tensors == 1
    what = "the matrix" if is_one else f"all of the {fact.num_tensors:,} matrices"
    yield INITIALIZED.finding(
        text=f"{line_of(fact.overwritten)} initializes {what} that {line_of(fact.set)} has set, and nothing has read "
        f"{'it' if is_one else 'them'} in between. So the training begins without these values.",
        places=(*place_of("set", fact.set), *place_of("init", fact.overwritten)),
        remedy=f"Let {line_of(fact.set)} run after {line_of(fact.overwritten)}.",
    )


def padding_findings(fact: FilledPadding) -> Iterator[Finding]:
    """Say which line has filled the padding row."""
    yield INITIALIZED.finding(
        text=f"{line_of(fact.filled)} initializes the whole table of the embedding at {line_of(fact.used)}, with its "
        f"padding row {fact.row}. That row was zero, gets no gradient, and now stays as it was drawn.",
        places=(*place_of("filled", fact.filled), *place_of("used", fact.used)),
        remedy=f"After {line_of(fact.filled)}, set the row to zero again, under torch.no_grad(): "
        f"embedding.weight[{fact.row}] = 0, where embedding is that layer.",
    )


OVERWRITTEN = Judge(OverwrittenValues, overwritten_findings)
PADDING = Judge(FilledPadding, padding_findings)
