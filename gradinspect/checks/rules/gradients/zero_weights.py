"""Weights that are all zero and get a gradient of zero, so that no step changes them."""

from collections.abc import Iterator

from gradinspect.analyses.gradients.observed import gradients_of, known
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.graph import Graph, NodeGradients, consumers, frame_of, leaf_name

STUCK = Rule(
    code="GI602",
    needs_values=True,
    title="weights are zero and stay zero",
    summary="Weights are all zero, and so is their gradient in every observed backward.",
    explanation="A layer of zeros passes on zeros, and lets no gradient through. If the layer before or after it "
    "is zero too, the gradient of both is zero, and no step changes them: only the last bias learns. One layer of "
    "zeros alone recovers, because its own gradient is not zero; so the zeros of LoRA, of adapters and of the last "
    "layer of a residual branch are not reported.",
    change="""\
  import torch
  from torch import nn

  model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
- for parameter in model.parameters():
-     nn.init.zeros_(parameter)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(3):
      loss = (model(torch.randn(16, 4)) - 1).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Initialize weights with small random values, as the layers of torch do by themselves.",
    must_repeat=2,  # zeros of the first step may be gone in the second
)
# between a weight and the operator that multiplies by it
_PASSING = ("TBackward", "TransposeBackward", "PermuteBackward", "ViewBackward", "ToCopyBackward", "ExpandBackward")


MAX_LINES = 3  # that set values


def stuck_weights(graph: Graph) -> list[str]:
    """Name weights that are zero, with their gradients, although a gradient came to an operator that reads one."""
    return [leaf_name(graph, number) for number in _stuck(graph)]


def stuck_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Report such weights, and the lines that made them zero."""
    graph = ended.graph
    stuck = _stuck(graph)
    if not stuck:
        return
    names = [leaf_name(graph, number) for number in stuck]
    values = [ended.values_of(number) for number in stuck]
    made = {one.frame for one in values if one is not None and one.frame is not None}
    lines = sorted(made, key=lambda frame: (frame.file, frame.line))[:MAX_LINES]
    where = f" at {listed([line_of(line) for line in lines])}" if lines else ""
    first = graph.nodes[stuck[max(stuck)]]
    verb = "is" if len(names) == 1 else "are"
    yield STUCK.finding(
        text=f"{listed(names)} {verb} all zeros, and the gradient is zero as well, so no step changes that: the layer "
        "before or after passes on zeros.",
        places=(
            *(place for line in lines for place in place_of("zeros", line)),
            *place_of("used", frame_of(graph, first)),
            *place_of("backward", ended.backward),
        ),
        remedy=f"Initialize {listed(names)} with small random values{where}, as torch does by default. Zeros are safe "
        "only for a bias, or for one layer among others that are not zero.",
        subjects=names,
    )


JUDGE = Judge(BackwardEnded, stuck_findings)


def _stuck(graph: Graph) -> dict[int, int]:
    """Return the leaves of such weights, each with an operator that reads it."""
    gradients = gradients_of(graph)
    zeros = [
        number
        for number, norm in gradients.weight_norms.items()
        if norm == 0 and (leaf := graph.nodes[number].leaf) is not None and len(leaf.info.shape) > 1
    ]
    if not zeros:
        return {}
    arrived = {ran.node: ran for ran in gradients.nodes}
    stuck = [number for number in sorted(zeros) if _norms(arrived.get(number)) == {0.0}]
    readers = {number: reader for number in stuck for reader in _readers(graph, number)}
    if not any(_norms(arrived.get(reader)) - {0.0} for reader in readers.values()):
        return {}
    return {number: readers[number] for number in stuck if number in readers}


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
    return set() if ran is None else {stats.norm for stats in known(ran.incoming) if stats.num_elements}
