"""Classes and items that have to be learned, and that are ignored."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import IgnoredClass
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

IGNORED = Rule(
    code="GI325",
    title="what has to be learned is ignored",
    summary="padding_idx, ignore_index or the blank of ctc_loss is a class or an item like any other.",
    explanation="An embedding gives padding_idx a row of zeros without a gradient, a loss leaves out targets that are "
    "ignore_index, and ctc_loss takes the blank, 0 by default, for a pause. Ids that begin at 0 collide with that: the "
    "first class or item is never learned, and nothing says so. Reported where the id comes about as often as each of "
    "the others and does not stand in runs, as what fills up rows does; where the labels of padded tokens are another "
    "id; and where targets of ctc_loss contain its blank.",
    change="""\
  import torch
  from torch import nn

  torch.manual_seed(0)
- items = nn.Embedding(8, 4, padding_idx=0)  # item 0 is an item
+ items = nn.Embedding(8, 4)
  head = nn.Linear(4, 3)
  for _ in range(5):
      item = torch.randint(8, (64,))
      nn.functional.cross_entropy(head(items(item)), item % 3).backward()
""",
    remedy="Leave the option out, or count from 1 and keep 0 for what is to be ignored.",
)


def ignored_findings(fact: IgnoredClass) -> Iterator[Finding]:
    """Report an id that is ignored and comes like the others."""
    where, often = line_of(fact.layer or fact.used), f"{fact.num_times:,} of {fact.num_all:,}"
    if fact.kind == "blank":
        text = f"{often} targets of ctc_loss are {fact.index}, which is its blank: it takes them for a pause."
        remedy = f"Count the classes from 1, with one more of them, or pass another blank at {where}."
    elif fact.kind == "item":
        text = (
            f"padding_idx is {fact.index}, and {often} items that are looked up are {fact.index}, about as often as "
            f"each of {fact.num_others} others, and not in runs. Its row is zero, and gets no gradient."
        )
        remedy = f"Is item {fact.index} one to be learned? Then leave padding_idx out, or count items from 1."
    elif fact.padding is not None:
        text = (
            f"ignore_index is {fact.index}, but the label of padded tokens is {fact.padding}, which no other token "
            f"has. {often} labels are {fact.index}: the loss leaves them out, so the class is never learned."
        )
        remedy = f"Pass ignore_index={fact.padding} to the loss at {where}."
    else:
        text = (
            f"ignore_index is {fact.index}, and {often} labels are {fact.index}, about as often as each of "
            f"{fact.num_others} others, and not in runs. The loss leaves them out, so the class is never learned."
        )
        remedy = f"Is class {fact.index} one to be learned? Then leave ignore_index out, or give it another value."
    yield IGNORED.finding(
        text=text, places=(*place_of("layer", fact.layer), *place_of("ignored", fact.used)), remedy=remedy
    )


JUDGE = Judge(IgnoredClass, ignored_findings)
