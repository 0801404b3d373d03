"""A layer that is several layers by accident: `[layer] * n`."""

import re
from collections.abc import Iterator

from gradinspect.checks.facts.training import SharedLayer
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

# how people write that they want one layer
_ON_PURPOSE = re.compile(r"shar|tied|tie_|recur|universal|albert|unroll", re.IGNORECASE)

SHARED = Rule(
    code="GI372",
    title="one layer stands for several",
    summary="A container has the same layer in all its places, so all of them share one set of parameters.",
    explanation="`[layer] * 6` is a list with six references to one layer. nn.ModuleList and nn.Sequential accept "
    "it, and the model has the parameters of one layer instead of six. A layer that is called several times, tied "
    "weights, and a line whose names say that the layer is shared are not reported.",
    change="""\
  import torch
  from torch import nn

- layers = nn.Sequential(*[nn.Linear(8, 8)] * 3)  # one layer, three times
+ layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)])
  loss = layers(torch.randn(5, 8)).square().mean()
  loss.backward()
""",
    remedy="Make each layer in a comprehension: [nn.Linear(8, 8) for _ in range(3)], or copy.deepcopy(layer).",
)


def shared_findings(fact: SharedLayer) -> Iterator[Finding]:
    """Report a container that repeats one layer."""
    if fact.made is not None and _ON_PURPOSE.search(f"{fact.made.code} {fact.container}"):
        return
    name = fact.container or "the model"
    yield SHARED.finding(
        text=f"All {fact.count} places of {name} have the same {fact.layer}, so they share one set of parameters.",
        places=(*place_of("made", fact.made), *place_of("backward", fact.backward)),
        remedy=f"Make {fact.count} layers at {line_of(fact.made)}: call the constructor of {fact.layer} for each, in a "
        "comprehension, or use copy.deepcopy(). If they are meant to share, call the one layer in a loop.",
        subjects=(fact.container,),
    )


JUDGE = Judge(SharedLayer, shared_findings)
