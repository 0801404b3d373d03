"""RNNs and attentions that run along the examples of a batch."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import RunsAlongBatch
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

ALONG = Rule(
    code="GI710",
    title="the sequence runs along the examples of the batch",
    summary="An RNN or an attention without batch_first is given [batch, time, features], and mixes the examples.",
    explanation="LSTM, GRU, MultiheadAttention and TransformerEncoderLayer take [time, batch, features] unless they "
    "are made with batch_first=True. Given [batch, time, features], they run along the batch: each example reads the "
    "others, and no step reads another step of its own sequence. All shapes fit, and the result changes with the size "
    "of the batch. Reported where axis 0 is known to be the batch: a DataLoader that shuffles has stacked its samples, "
    "or an index that was drawn has picked the rows, and nothing has moved the axis since.",
    change="""\
  import torch
  from torch import nn

  data, labels = torch.randn(64, 10, 8), torch.randint(2, (64, 10))
- rnn = nn.LSTM(8, 16)
+ rnn = nn.LSTM(8, 16, batch_first=True)
  head = nn.Linear(16, 2)
  for _ in range(3):
      rows = torch.randperm(64)[:16]
      out, _ = rnn(data[rows])  # 16 examples of 10 steps
      loss = nn.functional.cross_entropy(
          head(out).flatten(0, 1), labels[rows].flatten()
      )
      loss.backward()
""",
    remedy="Make the layer with batch_first=True.",
    explains=("GI704",),
)


def along_findings(fact: RunsAlongBatch) -> Iterator[Finding]:
    """Report a line that runs along the batch."""
    examples, steps = fact.shape
    ran, made = line_of(fact.ran), line_of(fact.batch)
    how = "A DataLoader that shuffles" if fact.is_loaded else made
    does = f"{fact.op} at {ran} runs" if fact.op else f"The attention at {ran} looks"
    yield ALONG.finding(
        text=f"{how} has put {examples} examples together along axis 0. {does} along axis 0, from one example to "
        f"another, and takes the {steps} steps on axis 1 for a batch.",
        places=(
            *place_of("layer", fact.layer),
            *place_of("batch", None if fact.batch == fact.ran else fact.batch),
            *place_of("ran", fact.ran),
        ),
        remedy=f"Make the {fact.op or 'attention'} that is called at {ran} with batch_first=True.",
    )


JUDGE = Judge(RunsAlongBatch, along_findings)
