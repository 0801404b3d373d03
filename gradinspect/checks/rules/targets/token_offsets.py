"""Scores of tokens that are compared with another token than the next one."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import TokenOffset
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

OFFSET = Rule(
    code="GI321",
    title="the scores are not those of the next token",
    summary="A language model is compared with the token after the next one, with an earlier one, or with its input.",
    explanation="At each place, a language model is given a token, and its scores there are those of the next one. "
    "Labels are shifted by one place for that, once: where the data are shifted, and the loss shifts again, the model "
    "learns the token after the next one; where scores are left out at the wrong end, one that it has read; and "
    "where nobody shifts, it copies its input. The loss falls in each case. The distance is read from the ids: those "
    "that an embedding was given and those that the loss is given. Silent where another loss of the program predicts "
    "the next token, and about copies where the model sees later tokens as well.",
    change="""\
  import torch
  from torch import nn

  embed, head = nn.Embedding(20, 8), nn.Linear(8, 20)
  rnn = nn.GRU(8, 8, batch_first=True)
  for _ in range(4):
      ids = torch.randint(20, (4, 12))
      given, labels = ids[:, :-1], ids[:, 1:]
      scores = head(rnn(embed(given))[0])
-     scores, labels = scores[:, :-1], labels[:, 1:]  # once more
      scores, labels = scores.reshape(-1, 20), labels.reshape(-1)
      loss = nn.functional.cross_entropy(scores, labels)
      loss.backward()
""",
    remedy="Shift once: either pass shifted labels, or let the loss compare scores[:, :-1] with ids[:, 1:].",
)


def offset_findings(fact: TokenOffset) -> Iterator[Finding]:
    """Report the distance of the tokens that a model is given and asked for."""
    where = line_of(fact.used)
    if fact.distance > 1:
        which = "the token after the next one" if fact.distance == 2 else f"the token {fact.distance} places ahead"
        why = f"each score is compared with {which}, as the labels are shifted {fact.distance} times."
        remedy = f"Shift once: leave out the shift at {where}, or that of the labels that are passed to it."
    elif fact.distance == 0:
        why = "each score is compared with the very token that the model is given at its place, so it learns to copy."
        remedy = f"At {where}, compare scores[:, :-1] with ids[:, 1:]."
    else:
        why = "each score is compared with a token that the model has been given already."
        remedy = f"At {line_of(fact.cut or fact.used)}, leave out the last score instead of the first, and the first "
        remedy += "label instead of the last: scores[:, :-1] and ids[:, 1:]."
    yield OFFSET.finding(
        text=f"In each of {fact.num_calls} calls, {why}",
        places=(
            *place_of("given", None if fact.looked_up == fact.used else fact.looked_up),
            *place_of("cut", None if fact.cut == fact.used or fact.distance > 0 else fact.cut),
            *place_of("loss", fact.used),
        ),
        remedy=remedy,
    )


JUDGE = Judge(TokenOffset, offset_findings)
