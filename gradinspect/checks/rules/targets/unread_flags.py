"""Targets that go on after the end of an episode."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import UnreadFlag
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_share

UNREAD = Rule(
    code="GI345",
    title="the targets go on after the end of an episode",
    summary="reward + gamma * next counts what follows in every row, and nothing reads the flag for the last step.",
    explanation="After the last step of an episode nothing follows, so its target is the reward alone. With the value "
    "of a next state in it, the end of an episode costs nothing, and values grow towards reward / (1 - gamma) in all "
    "states. Reported where the target of a regression adds a value of a network times a number, in each of five calls "
    "or more, and a variable beside the loss has 0 or 1 for each row, which no call has read.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(4, 2)
  for _ in range(6):
      state, after = torch.randn(16, 4), torch.randn(16, 4)
      reward, done = torch.ones(16), (torch.arange(16) % 4 == 0).float()
      with torch.no_grad():
          value = model(after).max(1)[0]
-     target = reward + 0.9 * value
+     target = reward + 0.9 * value * (1 - done)
      loss = nn.functional.mse_loss(model(state)[:, 0], target)
      loss.backward()
""",
    remedy="Multiply the value of what follows by 1 - done.",
)


def unread_findings(fact: UnreadFlag) -> Iterator[Finding]:
    """Report the flag that is left out."""
    added = line_of(fact.added)
    yield UNREAD.finding(
        text=f"{added} adds a value of what follows, times a number, to every row of the target. {fact.name} of the "
        f"same batch is 1 in {format_share(fact.num_ends, fact.num_rows)} of the rows and 0 in the others, and nothing "
        f"has read it in {fact.num_calls} calls.",
        places=(
            *place_of("target", fact.added), *place_of("made", fact.made),
            *place_of("loss", None if fact.used == fact.added else fact.used),
        ),
        remedy=f"If {fact.name} says where an episode has ended, multiply the value of what follows by "
        f"(1 - {fact.name}) at {added}.",
    )  # fmt: skip


JUDGE = Judge(UnreadFlag, unread_findings)
