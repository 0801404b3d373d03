"""Targets that are noise which the input does not contain."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import UnseenNoise
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

UNSEEN = Rule(
    code="GI359",
    title="the target is noise that the input does not contain",
    summary="A denoiser is compared with noise that was drawn anew, so nothing in its input says what to predict.",
    explanation="A diffusion model is given data with noise, and is to predict that noise. If the target is another "
    "draw, the best prediction is zero, and the loss stays near the variance of the noise. Reported where data and "
    "noise are weighed by tensors and added, a regression has noise for its target that was drawn by another call, "
    "and nothing else reads either draw.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 8)
  data, keep = torch.randn(16, 8), torch.rand(16, 1)
- noisy = keep.sqrt() * data + (1 - keep).sqrt() * torch.randn_like(data)
  noise = torch.randn_like(data)
+ noisy = keep.sqrt() * data + (1 - keep).sqrt() * noise
  loss = (model(noisy) - noise).square().mean()
  loss.backward()
""",
    remedy="Draw the noise once, and use it in the input and in the target.",
)


def noise_findings(fact: UnseenNoise) -> Iterator[Finding]:
    """Report a target that the input does not contain."""
    mixed, drawn, used = line_of(fact.mixed), line_of(fact.drawn), line_of(fact.used)
    passed = "" if fact.called is None else f": pass it on at {line_of(fact.called)}"
    yield UNSEEN.finding(
        text=f"{used} compares a prediction with the noise that {drawn} draws. Nothing else reads that noise: "
        f"what {mixed} adds to the input is another draw. So nothing that the model is given depends on its target.",
        places=(
            *place_of("mixed", fact.mixed), *place_of("called", fact.called), *place_of("drawn", fact.drawn),
            *place_of("used", fact.used),
            *place_of("backward", fact.backward),
        ),
        remedy=f"Draw the noise once, and use the same tensor at {mixed} and {used}{passed}.",
    )  # fmt: skip


JUDGE = Judge(UnseenNoise, noise_findings)
