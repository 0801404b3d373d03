"""Weights that are all zero and get a gradient of zero, so that no step changes them."""

from collections.abc import Iterator

from gradinspect.analyses.gradients.observed import gradients_of
from gradinspect.checks.facts import BackwardEnded
from gradinspect.checks.findings import Finding, listed, place_of
from gradinspect.checks.rule import Judge, Rule, RuleDoc
from gradinspect.graph import Graph, NodeGradients, consumers, frame_of

STUCK = Rule(
    doc=RuleDoc(
        code="GI602",
        title="weights are zero and stay zero",
        summary="Weights are all zero, and so is their gradient in every observed backward.",
        explanation="A layer of zeros passes on zeros, and lets no gradient through. If the layer before or after it "
        "is zero too, the gradient of both is zero, and no step changes them: only the last bias learns. One layer of "
        "zeros alone recovers, because its own gradient is not zero; so the zeros of LoRA, of adapters and of the last "
        "layer of a residual branch are not reported.",
        sample="""\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for parameter in model.parameters():
    nn.init.zeros_(parameter)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (model(torch.randn(16, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        fixed="""\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (model(torch.randn(16, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        remedy="Initialize weights with small random values, as the layers of torch do by themselves.",
    ),
    must_repeat=2,  # zeros of the first step may be gone in the second
)
# between a weight and the operator that multiplies by it
_PASSING = ("TBackward", "TransposeBackward", "PermuteBackward", "ViewBackward", "ToCopyBackward", "ExpandBackward")


def stuck_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Find weights that are zero, with their gradients, although a gradient came to an operator that reads one."""
    graph = ended.graph
    gradients = gradients_of(graph)
    zeros = [
        number
        for number, norm in gradients.weight_norms.items()
        if norm == 0 and (leaf := graph.nodes[number].leaf) is not None and len(leaf.info.shape) > 1
    ]
    if not zeros:
        return
    arrived = {ran.node: ran for ran in gradients.nodes}
    stuck = [number for number in sorted(zeros) if _norms(arrived.get(number)) == {0.0}]
    readers = {number: reader for number in stuck for reader in _readers(graph, number)}
    if not any(_norms(arrived.get(reader)) - {0.0} for reader in readers.values()):
        return
    names = [leaf.name or f"#{number}" for number in stuck if (leaf := graph.nodes[number].leaf) is not None]
    first = graph.nodes[readers[max(readers)]]
    verb = "is" if len(names) == 1 else "are"
    yield STUCK.finding(
        text=f"{listed(names)} {verb} all zeros, and the gradient is zero as well, so no step changes that: the layer "
        "before or after passes on zeros.",
        places=(*place_of("used", frame_of(graph, first)), *place_of("backward", ended.backward)),
        remedy=f"Initialize {listed(names)} with small random values, as torch does by default. Zeros are safe only "
        "for a bias, or for one layer among others that are not zero.",
        subjects=names,
    )


JUDGE = Judge(BackwardEnded, stuck_findings)


def _readers(graph: Graph, leaf: int) -> Iterator[int]:
    """Yield the operators that read a weight, past those that only arrange it."""
    by_node = consumers(graph)
    todo = [leaf]
    for number in todo:
        for reader, _ in by_node.get(number, ()):
            if graph.nodes[reader].name.startswith(_PASSING):
                todo.append(reader)
            else:
                yield reader


def _norms(ran: NodeGradients | None) -> set[float]:
    """Return the norms of the gradients that came to a node."""
    return set() if ran is None else {stats.norm for stats in ran.incoming if stats is not None}
