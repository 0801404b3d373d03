"""Advantages and targets through which gradients flow to what is to be estimated."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.objectives import AttachedAdvantage, AttachedTarget
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rewriting import assigned_names, statements_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

ATTACHED = Rule(
    code="GI358",
    title="gradients flow through what is only to be a target",
    summary="An advantage or a target has a graph, so the loss moves it instead of only moving towards it.",
    explanation="The loss of a policy multiplies the log-probability of an action by how much better it was than "
    "expected. If that has a graph to the critic, the same loss teaches the critic to make likely actions look good. "
    "The target of Q-learning is the best of the network's own next values: with a graph, the loss lowers the "
    "target as well as raising the prediction. There is no error in either case. Reported of a log-probability that "
    "is multiplied by a difference with a graph to other parameters, and of a regression on a value that max() or "
    "gather() chose, with something added, of the same network or a copy of it that an optimizer holds. Other targets "
    "with a graph are in a note.",
    change="""\
  import torch
  from torch import nn
  from torch.distributions import Categorical

  actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
  state, returns = torch.randn(16, 4), torch.randn(16)
  policy = Categorical(logits=actor(state))
  action = policy.sample()
  advantage = returns - critic(state).squeeze(1)
- actor_loss = -(policy.log_prob(action) * advantage).mean()  # has a graph
+ actor_loss = -(policy.log_prob(action) * advantage.detach()).mean()
  loss = actor_loss + advantage.square().mean()
  loss.backward()
""",
    remedy="Call detach() on the advantage or the target where the loss uses it.",
)


def advantage_findings(fact: AttachedAdvantage) -> Iterator[Finding]:
    """Report the factor of a log-probability that has a graph."""
    used, subtracted = line_of(fact.used), line_of(fact.subtracted)
    yield ATTACHED.finding(
        text=f"What {used} multiplies the log-probability by was computed at {subtracted} and has a graph. So the loss "
        "of the policy changes the parameters behind that as well, as if they were to make the actions look good.",
        places=(
            *place_of("computed", fact.subtracted), *place_of("used", fact.used), *place_of("backward", fact.backward)
        ),
        remedy=f"At {used}, {_detached(fact.used, fact.subtracted)}",
    )  # fmt: skip


def target_findings(fact: AttachedTarget) -> Iterator[Finding]:
    """Report the target of Q-learning with a graph."""
    used, made = line_of(fact.used), line_of(fact.made)
    name = _target_name(fact.made)
    yield ATTACHED.finding(
        text=f"The target of {used} is what {made} computes from the network's own values, by {fact.op}(), and it has "
        "a graph. So the loss moves the target towards the prediction, too.",
        places=(*place_of("target", fact.made), *place_of("used", fact.used), *place_of("backward", fact.backward)),
        remedy=f"Compute the target at {made} under torch.no_grad(), or use {name}.detach() at {used}.",
    )


ADVANTAGES = Judge(AttachedAdvantage, advantage_findings)
TARGETS = Judge(AttachedTarget, target_findings)


def _target_name(made: Frame | None) -> str:
    names = [] if made is None else assigned_names(made.code)
    return names[0] if len(names) == 1 else "the target"


def _detached(used: Frame | None, subtracted: Frame | None) -> str:
    """Say what to detach: the factor that is a variable, and no log-probability."""
    names = set(assigned_names("" if subtracted is None else subtracted.code))
    parts = [part for one in statements_of("" if used is None else used.code) for part in ast.walk(one)]
    factors = [
        ast.unparse(factor)
        for part in parts
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)
        for factor in (part.left, part.right)
        if isinstance(factor, ast.Name | ast.Attribute)
    ]
    known = next((one for one in factors if one in names), None)
    if known is None and len(factors) == 1 and "log" not in factors[0]:
        known = factors[0]
    if known is None:
        return f"call detach() on the factor that {line_of(subtracted)} computes: only its value is to count."
    return f"multiply by {known}.detach() instead of {known}."
