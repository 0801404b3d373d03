"""Labels of adversaries that agree."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import AgreeingAdversaries
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

AGREEING = Rule(
    code="GI320",
    title="the adversaries are told the same",
    summary="A generator has the label that its discriminator has for it, or real and made-up examples have one label.",
    explanation="A discriminator learns that what the generator makes is 0, and the generator has to make it say 1. "
    "With the same label in both losses the generator helps the discriminator, and is trained to be found out. With "
    "one label for real and made-up examples there is nothing to tell apart. Reported for binary_cross_entropy, "
    "binary_cross_entropy_with_logits and mse_loss, where the discriminator scores a detached result of the generator "
    "in one loss, the same with its graph in another one, and real examples in a third. Silent where the generator's "
    "loss is subtracted or scaled, an optimizer maximizes, or a custom Function is behind the scores: each may reverse "
    "the gradient.",
    change="""\
  import torch
  from torch import nn

  made, judge = nn.Linear(4, 2), nn.Linear(2, 1)
  ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
  loss_of = nn.functional.binary_cross_entropy_with_logits
  first = torch.optim.Adam(judge.parameters())
  second = torch.optim.Adam(made.parameters())
  for _ in range(4):
      fake = made(torch.randn(8, 4))
      loss = loss_of(judge(torch.randn(8, 2)), ones)
      loss = loss + loss_of(judge(fake.detach()), zeros)
      first.zero_grad()
      loss.backward()
      first.step()
-     loss = loss_of(judge(fake), zeros)
+     loss = loss_of(judge(fake), ones)
      second.zero_grad()
      loss.backward()
      second.step()
""",
    remedy="Give the generator the label of real examples, and the discriminator different ones.",
)


def agreeing_findings(fact: AgreeingAdversaries) -> Iterator[Finding]:
    """Say which two losses have the same label."""
    fake, other = line_of(fact.fake), line_of(fact.other)
    if fact.is_generator:
        text = f"In {fact.num_calls} calls, {fake} tells the discriminator that what the generator makes is "
        text += f"{fact.label:g}, and {other} trains the generator so that it answers {fact.label:g}: the two do not "
        text += "compete."
        remedy = f"At {other}, give the generator the label that the discriminator has for real examples."
    else:
        text = f"In {fact.num_calls} calls, the discriminator is told {fact.label:g} both of what the generator makes, "
        text += f"at {fake}, and of other examples, at {other}: there is nothing to tell apart."
        remedy = f"At {fake}, give what the generator makes another label than real examples have at {other}."
    yield AGREEING.finding(
        text=text,
        places=(
            *place_of("loss", fact.other if fact.is_generator else fact.fake),
            *place_of("loss", fact.fake if fact.is_generator else fact.other),
        ),
        remedy=remedy,
    )


JUDGE = Judge(AgreeingAdversaries, agreeing_findings)
