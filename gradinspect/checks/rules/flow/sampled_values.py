"""Values that a distribution sampled without a gradient, where the network behind the sample is to be trained by it."""

import ast
from collections.abc import Iterator

from gradinspect.checks.facts.values import SampledInput
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rewriting import statements_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

SAMPLED = Rule(
    code="GI308",
    title="a sample cuts the gradient of its distribution",
    summary="A network gets what sample() drew, where rsample() would let the gradient through.",
    explanation="sample() draws without a gradient, rsample() as a function of the parameters of the distribution. In "
    "a variational autoencoder, the encoder then learns from the divergence only; in an actor that is trained by a "
    "critic, the actor does not learn what the critic says. There is no error, because the other term has a graph. "
    "The derivative of torch.normal(mean, std) is zero, which amounts to the same. "
    "Samples of which only the log-probability is used, as in policy gradients, are not reported, nor those that "
    "a critic learns to predict.",
    change="""\
  import torch
  from torch import nn
  from torch.distributions import Normal, kl_divergence

  encoder, decoder = nn.Linear(8, 4), nn.Linear(2, 8)
  x = torch.randn(16, 8)
  mean, scale = encoder(x).chunk(2, dim=1)
  posterior = Normal(mean, scale.exp())
- z = posterior.sample()  # without a gradient
+ z = posterior.rsample()
  divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum(1).mean()
  loss = (decoder(z) - x).square().sum(1).mean() + divergence
  loss.backward()
""",
    remedy="Use rsample() in place of sample().",
)


def sampled_findings(fact: SampledInput) -> Iterator[Finding]:
    """Report a sample that a network is given."""
    where = line_of(fact.sampled)
    name = "torch.normal()" if fact.is_normal else "sample()"
    remedy = f"Use rsample() in place of sample() at {where}."
    if fact.is_normal:
        remedy = f"At {where}, use {_normal(fact.sampled)}.rsample() in place of torch.normal()."
    yield SAMPLED.finding(
        text=f"{name} at {where} draws without a gradient. What {line_of(fact.used)} computes from the sample gives "
        "no gradient to the parameters of the distribution, which learn from other terms of the loss only.",
        places=(
            *place_of("sampled", fact.sampled), *place_of("used", fact.used), *place_of("backward", fact.backward)
        ),
        remedy=remedy,
    )  # fmt: skip


JUDGE = Judge(SampledInput, sampled_findings)


def _normal(line: Frame | None) -> str:
    """Write the distribution that a call of torch.normal() draws from."""
    parts = (part for one in statements_of("" if line is None else line.code) for part in ast.walk(one))
    for call in parts:
        match call:
            case (
                ast.Call(func=ast.Attribute(ast.Name("torch"), "normal"), args=[mean, std], keywords=[])
                | ast.Call(
                    func=ast.Attribute(ast.Name("torch"), "normal"),
                    args=[],
                    keywords=[ast.keyword("mean", mean), ast.keyword("std", std)],
                )
            ):
                return f"torch.distributions.Normal({ast.unparse(mean)}, {ast.unparse(std)})"
    return "torch.distributions.Normal(mean, std)"
