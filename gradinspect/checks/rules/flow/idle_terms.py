"""Terms of a loss that train nothing, because they reach only what another optimizer holds."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import IdleTerm
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES

IDLE = Rule(
    code="GI311",
    title="a term of the loss reaches only what another optimizer trains",
    summary="A term was cut off from what this step updates; its gradients go to parameters of another optimizer.",
    explanation="The adversarial term of a generator has its gradient through the discriminator. With fake.detach() "
    "it still has a graph, to the discriminator's own parameters, which the generator's optimizer does not hold. If "
    "another term reaches the generator, no gradient is missing, and only that term is trained on. "
    "Reported if a term was detached from parameters that another term reaches, their optimizer steps after each "
    "backward, and no optimizer of what the term reaches does before the next one.",
    change="""\
  import torch
  from torch import nn

  maker, judge = nn.Linear(4, 2), nn.Linear(2, 1)
  optimizer_m = torch.optim.SGD(maker.parameters(), lr=0.1)
  optimizer_j = torch.optim.SGD(judge.parameters(), lr=0.1)
  for _ in range(4):
      fake = maker(torch.randn(8, 4))
      loss_j = (judge(fake.detach()) ** 2).mean()
      loss_j = loss_j + ((judge(torch.randn(8, 2)) - 1) ** 2).mean()
      optimizer_j.zero_grad()
      loss_j.backward()
      optimizer_j.step()
-     fooled = ((judge(fake.detach()) - 1) ** 2).mean()  # copied from above
+     fooled = ((judge(fake) - 1) ** 2).mean()
      loss_m = fooled + 0.01 * fake.square().mean()
      optimizer_m.zero_grad()
      loss_m.backward()
      optimizer_m.step()
""",
    remedy="Compute the term from the output with its graph.",
)


def idle_findings(fact: IdleTerm) -> Iterator[Finding]:
    """Say what detached the term."""
    cause = DETACH_REMEDIES[fact.cause]
    where, term = line_of(fact.cut), line_of(fact.term)
    yield IDLE.finding(
        text=f"The term of the loss that {term} computes reaches nothing that {fact.optimizer} updates: "
        f"{cause.why.format(op=fact.op)} Its gradients go to what {fact.other} holds, which does not step before the "
        "next backward.",
        places=(
            *place_of("detached", fact.cut), *place_of("term", fact.term), *place_of("backward", fact.backward),
        ),
        remedy=cause.remedy.format(op=fact.op, where=where, used=term),
    )  # fmt: skip


JUDGE = Judge(IdleTerm, idle_findings)
