"""Scores whose classes were brought to axis 1 by a view: it keeps the order of the elements, so they are mixed up."""

from collections.abc import Iterator

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import NEGATIVE_LOG_LIKELIHOOD, has_same_values, output_shape
from gradinspect.graph import Graph, Node, frame_of, nodes_named

_VIEWS = ("ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward")
_SOFTMAX = "LogSoftmaxBackward"

SCRAMBLED = Rule(
    code="GI702",
    title="a view stands in for a transpose",
    summary="Scores of [batch, time, classes] become [batch, classes, time] by view or reshape, which mixes them up.",
    explanation="cross_entropy wants the classes on axis 1. view and reshape keep the elements in their order and only "
    "count them anew: what then is the score of a class at a time is one of another class at another time. The shapes "
    "fit, the loss falls a little, and the model stays near chance. Reported where the shape that the loss is given "
    "is that of its scores with the last axis moved to place 1.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  x, y = torch.randn(2, 5, 8), torch.randint(4, (2, 5))
  scores = model(x)  # [2, 5, 4]
- loss = nn.functional.cross_entropy(scores.view(2, 4, 5), y)
+ loss = nn.functional.cross_entropy(scores.transpose(1, 2), y)
  loss.backward()
""",
    remedy="Move the axis: scores.transpose(1, 2), or movedim(-1, 1) of more axes.",
    explains_gradients=True,
)


def scrambled_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Look at what each loss of classes is given."""
    graph = starts.graph
    for number in nodes_named(graph, NEGATIVE_LOG_LIKELIHOOD):
        node: Node | None = graph.nodes[number]
        for _ in range(8):
            node = None if node is None else _first(graph, node)
            if node is None or not (has_same_values(node) or node.name.startswith(_SOFTMAX)):
                break
            scores = _first(graph, node)
            if (
                scores is not None
                and node.name.startswith(_VIEWS)
                and _is_moved(output_shape(scores), output_shape(node))
            ):
                yield _finding(starts, node, scores, graph.nodes[number])
                break


JUDGE = Judge(BackwardStarts, scrambled_findings)


def _first(graph: Graph, node: Node) -> Node | None:
    edge = node.next_edges[0] if node.next_edges else None
    return None if edge is None or edge.input_nr else graph.nodes[edge.next_node]


def _is_moved(before: tuple[int | str, ...], after: tuple[int | str, ...]) -> bool:
    """Return whether a shape is another one with its last axis at place 1, and elements that change their places."""
    if len(before) < 3 or after != (before[0], before[-1], *before[1:-1]):
        return False
    return before[-1] != 1 and any(length != 1 for length in before[1:-1]) and before != after


def _finding(starts: BackwardStarts, view: Node, scores: Node, loss: Node) -> Finding:
    viewed, reduced = frame_of(starts.graph, view), frame_of(starts.graph, loss)
    before, after = (f"[{', '.join(map(str, output_shape(one)))}]" for one in (scores, view))
    return SCRAMBLED.finding(
        text=f"{line_of(viewed)} makes {after} of {before} by a view, which keeps the elements in their order. The "
        "loss takes axis 1 for the classes, and finds scores of several classes and positions mixed up there.",
        places=(
            *place_of("viewed", viewed),
            *place_of("loss", reduced if reduced != viewed else None),
            *place_of("backward", starts.backward),
        ),
        remedy=f"At {line_of(viewed)}, move the axis instead: scores.movedim(-1, 1), where scores is what the view is "
        "taken of.",
    )
