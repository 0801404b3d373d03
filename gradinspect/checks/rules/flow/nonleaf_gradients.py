"""A `.grad` that is read and never filled, because its tensor is not a leaf."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.facts.values import NonLeafGradient
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Frame

NON_LEAF = Rule(
    code="GI305",
    title=".grad of a non-leaf tensor is None",
    summary="The program reads .grad of a tensor that an operator made, which backward never fills.",
    explanation="Backward fills .grad of leaves only: tensors that no operator made. w = torch.randn(3, "
    "requires_grad=True) * 0.1 is the result of a multiplication; the leaf is the tensor before it, which is no "
    "longer reachable. The same applies to nn.Parameter(w).to(device), x.unsqueeze(0) and x.view(-1). gradinspect "
    "names the operator that made the tensor and the line that reads its .grad.",
    change="""\
  import torch

- w = torch.randn(3, requires_grad=True) * 0.1  # not a leaf
+ w = (torch.randn(3) * 0.1).requires_grad_()
  for _ in range(2):
      (w * torch.randn(3)).sum().backward(retain_graph=True)
      print(w.grad)
""",
    remedy="Write (torch.randn(3) * 0.1).requires_grad_(). For an intermediate tensor, call w.retain_grad().",
)


def nonleaf_findings(fact: NonLeafGradient) -> Iterator[Finding]:
    """Report a `.grad` that is read and that backward does not fill."""
    name, op = fact.name, fact.op
    how = f"{op} made it from another tensor, which is the leaf" if op else "it was computed from another tensor"
    yield NON_LEAF.finding(
        text=f"{name}.grad is None: {how}. Backward fills .grad of leaves only.",
        places=(*place_of("made", fact.made), *place_of("backward", fact.backward), *place_of("read", fact.read)),
        remedy=_remedy(name, fact.made, fact.leaves),
        subjects=(name,),
    )


JUDGE = Judge(NonLeafGradient, nonleaf_findings)


def _remedy(name: str, made: Frame | None, leaves: Sequence[str]) -> str:
    if leaves:
        return f"Call {name}.retain_grad() before backward, or read the .grad of {listed(leaves)}."
    return (
        f"Make {name} the leaf: at {line_of(made)}, append .detach().requires_grad_() to what is assigned, as in "
        "(torch.randn(3) * 0.1).detach().requires_grad_()."
    )
