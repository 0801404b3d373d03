"""Masks that are meant to hide scores from a softmax, and hide none."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import AddedMask
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

ADDED = Rule(
    code="GI360",
    title="a mask hides nothing from a softmax",
    summary="Scores are filled with a number near 0, or a mask of 0 and 1 is added to them, and nothing is hidden.",
    explanation="What is added to the scores of an attention hides a place only if it is minus infinity, or a large "
    "negative number. 0 and 1, as a comparison gives them, change the weight of a place by a factor of e: padding is "
    "read nearly as much as before. So it is with a fill of 1e-9, where -1e9 was meant: a score of 0 is one like "
    "others. The shapes fit, and nothing raises. Reported where the mask comes out of a comparison and has both "
    "values, or the fill is between -1 and 1, and a softmax gets the result in each call.",
    change="""\
  import torch
  from torch import nn

  q, k = nn.Linear(8, 8), nn.Linear(8, 8)
  for _ in range(4):
      x = torch.randn(4, 6, 8)
      is_token = torch.arange(6) < torch.tensor([[6], [4], [3], [5]])
      scores = q(x) @ k(x).transpose(1, 2)
-     scores = scores + is_token.float()[:, None]  # hides nothing
+     scores = scores.masked_fill(~is_token[:, None], float("-inf"))
      (scores.softmax(-1) @ x).square().mean().backward()
""",
    remedy="Fill the places that are to be hidden: scores.masked_fill(mask == 0, float('-inf')).",
)


def added_findings(fact: AddedMask) -> Iterator[Finding]:
    """Report a mask that hides nothing."""
    if fact.filled is not None:
        yield ADDED.finding(
            text=f"{line_of(fact.used)} fills scores with {fact.filled:g} before a softmax gets them, in each of "
            f"{fact.num_calls} calls. That is a score like others, so what was to be hidden is read.",
            places=place_of("filled", fact.used),
            remedy=f"At {line_of(fact.used)}, fill them with float('-inf'), or with -1e9 where a whole row may be.",
        )
        return
    yield ADDED.finding(
        text=f"{line_of(fact.used)} adds a mask of 0 and 1 to what a softmax gets, in each of {fact.num_calls} calls. "
        "That changes the weight of a place by a factor of e, and hides none.",
        places=(*place_of("mask", None if fact.made == fact.used else fact.made), *place_of("added", fact.used)),
        remedy=f"At {line_of(fact.used)}, fill the places that are to be hidden instead: "
        "scores.masked_fill(mask == 0, float('-inf')) where 1 stands for a place that counts.",
    )


JUDGE = Judge(AddedMask, added_findings)
