"""An index for each row that selects columns of all rows: `q[:, actions]` in place of `gather`."""

from collections.abc import Iterator, Mapping, Sequence

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import output_shape
from gradinspect.graph import Consumer, Graph, Node, consumers, frame_of, nodes_named

_REGRESSIONS = ("MseLossBackward", "SmoothL1LossBackward", "HuberLossBackward", "L1LossBackward")
_PASSED = ("MeanBackward", "SumBackward", "SqueezeBackward", "SubBackward", "UnsqueezeBackward", "ExpandBackward")

COLUMNS = Rule(
    code="GI354",
    title="an index for each row selects columns of all rows",
    summary="q[:, actions] has one column for each example of the batch, and each row is compared with all of them.",
    explanation="For values of shape [batch, actions], `q[:, a]` with one index for each example returns "
    "[batch, batch]: the columns that the other examples chose, too. There is no error, because a target "
    "broadcasts, and the network learns a mean over actions. Reported if the result is square, is not what it was "
    "selected from, and goes into a regression loss. Taking its diagonal is right.",
    change="""\
  import torch
  from torch import nn

  network = nn.Linear(8, 4)
  state, action = torch.randn(16, 8), torch.randint(4, (16,))
  target = torch.randn(16, 1)
- value = network(state)[:, action]  # 16 columns for each example
+ value = network(state).gather(1, action.unsqueeze(1))
  loss = nn.functional.mse_loss(value, target.expand_as(value))
  loss.backward()
""",
    remedy="Use gather(1, index.unsqueeze(1)), which takes one element of each row.",
)


def column_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find columns that were selected by an index for each row."""
    graph = starts.graph
    selected = [number for number in nodes_named(graph, ("IndexBackward",)) if _is_square(graph, graph.nodes[number])]
    readers = consumers(graph) if selected else {}
    for number in selected:
        node = graph.nodes[number]
        loss = _regression(graph, readers, number)
        if loss is not None or _is_of_log_probabilities(graph, node):
            rows, where = output_shape(node)[0], line_of(frame_of(graph, node))
            line = None if loss is None else frame_of(graph, loss)
            yield COLUMNS.finding(
                text=f"{where} selects {rows} columns of each of {rows} rows: the result is [{rows}, {rows}], so each "
                "example is compared with what the other examples have chosen.",
                places=(
                    *place_of("indexed", frame_of(graph, node)), *place_of("loss", line),
                    *place_of("backward", starts.backward),
                ),
                remedy=f"At {where}, take one element of each row: .gather(1, index.unsqueeze(1)).squeeze(1).",
            )  # fmt: skip


JUDGE = Judge(BackwardStarts, column_findings)


def _is_square(graph: Graph, node: Node) -> bool:
    """Return whether as many columns were selected as there are rows, of another number of columns."""
    edge = node.next_edges[0] if node.next_edges else None
    before = () if edge is None else output_shape(graph.nodes[edge.next_node])
    after = output_shape(node)
    return len(before) == len(after) == 2 and after[0] == after[1] == before[0] != before[1] and after[0] != 1


def _is_of_log_probabilities(graph: Graph, node: Node) -> bool:
    """Return whether an index selects from a log_softmax: one element of each row is wanted then, in any loss."""
    edge = node.next_edges[0]
    return edge is not None and graph.nodes[edge.next_node].name.startswith("LogSoftmaxBackward")


def _regression(graph: Graph, readers: Mapping[int, Sequence[Consumer]], start: int) -> Node | None:
    """Follow a value through means, sums and differences to a regression loss."""
    todo, seen = [start], {start}
    while todo:
        for reader, _ in readers.get(todo.pop(), ()):
            node = graph.nodes[reader]
            if node.name.startswith(_REGRESSIONS):
                return node
            if node.name.startswith(_PASSED) and reader not in seen:
                seen.add(reader)
                todo.append(reader)
    return None
