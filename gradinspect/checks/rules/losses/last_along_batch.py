"""The last sequence of a batch instead of the last step of each: an RNN without batch_first."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import LastAlongBatch
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

_TAKEN = {"last": "the last", "mean": "the mean", "sum": "the sum", "max": "the largest", "amax": "the largest"}
LAST_ALONG_BATCH = Rule(
    code="GI704",
    title="the steps of an RNN are taken along its batch axis",
    summary="out[:, -1] of an RNN without batch_first is the last sequence, and out.mean(1) a mean over sequences.",
    explanation="LSTM, GRU and RNN take [time, batch, features] unless they are made with batch_first=True. What is "
    "given as [batch, time, features] is read along the batch then: each example follows the one before it, and "
    "out[:, -1] has one row for each. The shapes fit, and the loss falls a little. Reported where a line takes the "
    "last place of axis 1 in every call, of more than one, or the mean, sum or maximum over it, and nothing is taken "
    "of another place or of axis 0.",
    change="""\
  import torch
  from torch import nn

- rnn = nn.LSTM(8, 16)
+ rnn = nn.LSTM(8, 16, batch_first=True)
  head = nn.Linear(16, 1)
  for _ in range(2):
      x, y = torch.randn(4, 6, 8), torch.randn(4, 1)  # 4 of 6 steps
      out, _ = rnn(x)
      loss = (head(out[:, -1]) - y).square().mean()
      loss.backward()
""",
    remedy="Make the RNN with batch_first=True, or, if axis 0 is time, take out[-1].",
)


def last_along_batch_findings(fact: LastAlongBatch) -> Iterator[Finding]:
    """Report a line that takes the last sequence."""
    (steps, sequences), taken = fact.shape, _TAKEN[fact.how]
    yield LAST_ALONG_BATCH.finding(
        text=f"{fact.op} at {line_of(fact.ran)} was made without batch_first, so it takes axis 0 of its input for "
        f"{steps} steps and axis 1 for {sequences} sequences. {line_of(fact.used)} takes {taken} of these sequences, "
        "in all steps.",
        places=(
            *place_of("layer", fact.layer),
            *place_of("ran", fact.ran if fact.ran != fact.used else None),
            *place_of("taken", fact.used),
        ),
        remedy=f"If the input is [batch, time, features], make {fact.op} with batch_first=True. If axis 0 is time, "
        f"take the last step by [-1] at {line_of(fact.used)}."
        if fact.how == "last"
        else f"If the input is [batch, time, features], make {fact.op} with batch_first=True. If axis 0 is time, "
        f"take {taken} over axis 0 at {line_of(fact.used)}.",
    )


JUDGE = Judge(LastAlongBatch, last_along_batch_findings)
