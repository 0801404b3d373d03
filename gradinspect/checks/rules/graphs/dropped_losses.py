"""Losses that no backward call goes through, as it is called once for several."""

from collections.abc import Iterator

from gradinspect.checks.facts.graphs import LastLossOnly
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

DROPPED_LOSSES = Rule(
    code="GI395",
    title="only the last of several losses is trained on",
    summary="backward() is called once for several losses, and goes through the one that was computed last.",
    explanation="loss.backward() below the loop over batches, instead of in it, trains on the last batch of each epoch "
    "only. The other losses are computed and dropped: there is no error, the printed loss looks as usual, and the "
    "model learns as slowly as if it had a single batch. Reported if it is so in every round, with as many losses in "
    "each. Losses that are added up, compared with each other or kept in a list are not reported.",
    change="""\
  import torch
  from torch import nn

  model, x = nn.Linear(8, 1), torch.randn(80, 8)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for epoch in range(3):
      for batch in x.split(8):
          optimizer.zero_grad()
          loss = (model(batch) - batch[:, :1]).square().mean()
-     loss.backward()  # of the last batch
-     optimizer.step()
+         loss.backward()
+         optimizer.step()
""",
    remedy="Call backward() and step() in the loop, once for each loss.",
)


def dropped_findings(fact: LastLossOnly) -> Iterator[Finding]:
    """Report losses that nothing is trained on."""
    loss, backward = line_of(fact.loss), line_of(fact.backward)
    remedy = f"Call backward() at {backward} for each loss, and let only the step wait."
    if fact.is_below:
        remedy = f"Move {backward} into the loop of {loss}, and the optimizer's step with it."
    yield DROPPED_LOSSES.finding(
        text=f"{loss} computes {fact.num_losses} losses for each backward call at {backward}, which goes through the "
        f"last one only, in all {fact.num_rounds} rounds that were seen. Nothing is trained on the others.",
        places=(*place_of("called", fact.backward), *place_of("loss", fact.loss)),
        remedy=remedy,
    )


JUDGE = Judge(LastLossOnly, dropped_findings)
