"""Codes that learn nothing from the layers that read the entries which they chose."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import UnlearnedLookup
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rewriting import assigned_names
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

LOOKUP = Rule(
    code="GI309",
    title="a lookup cuts the gradient of the code that chose it",
    summary="Layers are given the nearest entries of a table, so the code that chose them learns nothing from them.",
    explanation="A vector-quantized autoencoder replaces each code by the nearest entry of its codebook. argmin() has "
    "no gradient, so what the decoder makes of the entry teaches the codebook at most: the encoder learns from the "
    "term that compares code and entry only, and not what the decoder needs. A straight-through estimator gives "
    "the entry's value and the code's gradient. Reported where the loss compares the entry with the code, and a layer "
    "is given the entry through which no gradient comes to the code.",
    change="""\
  import torch
  from torch import nn
  from torch.nn.functional import mse_loss

  encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
  codebook = nn.Embedding(16, 2)
  x = torch.randn(32, 8)
  z = encoder(x)
  q = codebook(torch.cdist(z, codebook.weight).argmin(1))
- y = decoder(q)  # teaches the encoder nothing
+ y = decoder(z + (q - z).detach())
  loss = mse_loss(y, x) + mse_loss(q, z.detach()) + mse_loss(z, q.detach())
  loss.backward()
""",
    remedy="Give the layers z + (q - z).detach(), where z is the code and q the entry.",
)


def lookup_findings(fact: UnlearnedLookup) -> Iterator[Finding]:
    """Say which layer is given the entry without a straight-through estimator."""
    code, entry = _name(fact.coded) or "z", _name(fact.looked_up) or "q"
    if code == entry:
        code, entry = "z", "q"
    used, compared = line_of(fact.used), line_of(fact.compared)
    yield LOOKUP.finding(
        text=f"The layers at {used} are given {entry}, which {fact.op}() chose at {line_of(fact.chosen)} without a "
        f"gradient. So what made {code} learns only from the term that compares the two at {compared}, and not from "
        "what the layers make of it.",
        places=(
            *place_of("chosen", fact.chosen), *place_of("looked up", fact.looked_up), *place_of("used", fact.used),
            *place_of("compared", fact.compared), *place_of("backward", fact.backward),
        ),
        remedy=f"Give the layers {code} + ({entry} - {code}).detach() instead of {entry}, which has the value of "
        f"{entry} and the gradient of {code}. Keep {entry} where {compared} compares the two.",
    )  # fmt: skip


JUDGE = Judge(UnlearnedLookup, lookup_findings)


def _name(line: Frame | None) -> str | None:
    names = [] if line is None else assigned_names(line.code)
    return names[0] if len(names) == 1 else None
