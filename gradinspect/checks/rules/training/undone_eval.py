"""Frozen parts whose running statistics go on to change."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import UndoneEval
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

UNDONE = Rule(
    code="GI383",
    title="train() puts a frozen part back into train mode",
    summary="BatchNorm of a frozen part updates its running statistics, although eval() was called of the part.",
    explanation="train() of a model sets the mode of all that it has, also of a part that was put into eval mode "
    "before. requires_grad does not matter for that: BatchNorm of a frozen part normalizes with the batch, and its "
    "running statistics move to the new data. Reported if eval() was called of the part itself, train() of the model "
    "around it undid that before the part was ever called, and none of its parameters requires grad.",
    change="""\
  import torch
  from torch import nn

  trunk = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
  model = nn.Sequential(trunk, nn.Linear(16, 4))
  trunk.requires_grad_(False)
  trunk.eval()
  optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
  for _ in range(3):
      model.train()
+     trunk.eval()
      optimizer.zero_grad()
      loss = model(torch.randn(5, 8)).square().mean()
      loss.backward()
      optimizer.step()
""",
    remedy="Call eval() of the frozen part after each train() of the model.",
)


def undone_findings(fact: UndoneEval) -> Iterator[Finding]:
    """Name the lines that set both modes."""
    verb = "updates its" if len(fact.layers) == 1 else "update their"
    layers = tuple(f"{fact.part}.{name}" if name else fact.part for name in fact.layers)
    yield UNDONE.finding(
        text=f"{line_of(fact.put)} puts {fact.part} into eval mode, and train() at {line_of(fact.undone)} puts it "
        f"back: it is frozen, but {listed(layers)} {verb} running statistics in each forward pass.",
        places=(*place_of("eval", fact.put), *place_of("train", fact.undone)),
        remedy=f"Call eval() of {fact.part} again after each train() at {line_of(fact.undone)}. If its statistics "
        f"should follow the new data, remove eval() at {line_of(fact.put)}.",
        subjects=layers,
    )


JUDGE = Judge(UndoneEval, undone_findings)
