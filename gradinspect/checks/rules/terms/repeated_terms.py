"""Terms that are added to a loss more than once."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import RepeatedTerm
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

REPEATED = Rule(
    code="GI331",
    title="a term is added to the loss more than once",
    summary="The same term is added up again with the same weight, so it counts twice against the others.",
    explanation="`loss = ce + aux`, and further down `loss = loss + ce`: there is no error, the loss falls, and ce "
    "weighs twice what it was meant to, against all other terms. So does a term that is computed again, by the same "
    "function from the same tensors. Reported where one tensor is added more than once without a weight of its own, "
    "and where in each call a term has the value of another one that was computed alike. A loss that is added with "
    "two different weights is not reported, nor are two terms that only happen to be equal.",
    change="""\
  import torch
  from torch import nn

  body, head, aux_head = nn.Linear(8, 8), nn.Linear(8, 3), nn.Linear(8, 3)
  for _ in range(3):
      h = body(torch.randn(16, 8)).relu()
      ce = nn.functional.cross_entropy(head(h), torch.arange(16) % 3)
      aux = nn.functional.cross_entropy(aux_head(h), torch.arange(16) % 3)
      loss = ce + 0.3 * aux
-     loss = loss + ce  # it is in there
      loss.backward()
""",
    remedy="Add each term once. If it is to count twice, multiply it by 2, so that a reader can see it.",
)


def repeated_findings(fact: RepeatedTerm) -> Iterator[Finding]:
    """Name the term, and where it is added."""
    lines = list(dict.fromkeys(line_of(one) for one in fact.used if one is not None))
    first, last = line_of(fact.first), fact.used[-1] if fact.used else None
    added = f" at {' and '.join(lines)}" if lines else ""
    if fact.again is None:
        text = f"What {first} computes is added to the loss {format_count(fact.count, 'time')},{added or ' in all'}."
        remedy = f"Add it once: take it out of {line_of(last)}, or multiply it by {fact.count} if that is meant."
    else:
        again = "the same line" if fact.again == fact.first else line_of(fact.again)
        text = f"What {first} computes is part of the loss already, and {again} computes the same again from the same "
        text += f"tensors. It is added{added}: it counts twice."
        remedy = f"Add it once: take the second one out of {line_of(last)}, or multiply it by 2 if that is meant."
    places = [*place_of("term", fact.first)]
    places += [] if fact.again == fact.first else place_of("again", fact.again)
    places += [place for one in dict.fromkeys(fact.used) for place in place_of("added", one)]
    yield REPEATED.finding(text=text, places=places, remedy=remedy)


JUDGE = Judge(RepeatedTerm, repeated_findings)
