"""Axes that a view was to move: it keeps the order of the elements, so they are mixed up."""

from collections.abc import Iterator
from math import prod

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import (
    NEGATIVE_LOG_LIKELIHOOD,
    has_same_values,
    output_shape,
)
from gradinspect.graph import Graph, Node, frame_of, nodes_named
from gradinspect.units import format_shape

_VIEWS = ("ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward")
_SOFTMAX = "LogSoftmaxBackward"
_RECURRENT = ("LSTM", "GRU", "RNN")

SCRAMBLED = Rule(
    code="GI702",
    title="a view stands in for a transpose",
    summary="view or reshape is to move an axis, of scores or of the state of an RNN, and mixes the elements up.",
    explanation="cross_entropy wants the classes on axis 1. view and reshape keep the elements in their order and only "
    "count them anew: what then is the score of a class at a time is one of another class at another time. The shapes "
    "fit, the loss falls a little, and the model stays near chance. Reported where the shape that the loss is given "
    "is that of its scores with the last axis moved to place 1, or where [batch, classes, ...] is flattened to "
    "[-1, classes]; and where the state of an RNN, [directions, batch, features], becomes [batch, -1], which puts "
    "parts of different sequences into one row. Of images with three or four channels the values tell, whatever has "
    "reshaped them: those that are as many places apart as there are channels are more alike than neighbors.",
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
    """Look at what each loss of classes is given, and at the states of recurrent layers."""
    graph = starts.graph
    for number in nodes_named(graph, NEGATIVE_LOG_LIKELIHOOD):
        node: Node | None = graph.nodes[number]
        for _ in range(8):
            node = None if node is None else _first(graph, node)
            if node is None or not (has_same_values(node) or node.name.startswith(_SOFTMAX)):
                break
            scores = _first(graph, node)
            if scores is not None and node.name.startswith(_VIEWS):
                before, after = output_shape(scores), output_shape(node)
                if _is_moved(before, after) or _is_flattened(before, after):
                    yield _finding(starts, node, scores, graph.nodes[number])
                    break
    seen: set[int | None] = set()
    for number in nodes_named(graph, _VIEWS):
        view = graph.nodes[number]
        state = _first(graph, view)
        if state is not None and view.frame not in seen and _is_state_by_batch(graph, view, state):
            seen.add(view.frame)
            yield _finding_on_state(starts, view, state)


JUDGE = Judge(BackwardStarts, scrambled_findings)


def _first(graph: Graph, node: Node) -> Node | None:
    edge = node.next_edges[0] if node.next_edges else None
    return None if edge is None or edge.input_nr else graph.nodes[edge.next_node]


def _is_moved(before: tuple[int | str, ...], after: tuple[int | str, ...]) -> bool:
    """Return whether a shape is another one with its last axis at place 1, and elements that change their places."""
    if len(before) < 3 or after != (before[0], before[-1], *before[1:-1]):
        return False
    return before[-1] != 1 and any(length != 1 for length in before[1:-1]) and before != after


def _is_flattened(before: tuple[int | str, ...], after: tuple[int | str, ...]) -> bool:
    """Return whether [batch, classes, ...] was flattened to [-1, classes], where the last axis is another one."""
    if len(before) < 3 or len(after) != 2 or not all(isinstance(length, int) for length in before):
        return False
    classes, others = before[1], [int(length) for length in (before[0], *before[2:])]
    return after == (prod(others), classes) and 1 != classes != before[-1] and prod(others[1:]) != 1


def _is_state_by_batch(graph: Graph, view: Node, state: Node) -> bool:
    """Return whether the state of a recurrent layer was given the shape of one row for each sequence.

    torch.nn.LSTM, GRU and RNN return [layers * directions, batch, features].
    """
    before, after = output_shape(state), output_shape(view)
    if len(before) != 3 or not all(isinstance(length, int) for length in before):
        return False
    pieces, batch, features = (int(length) for length in before)
    return (
        after == (batch, pieces * features)
        and 1 not in (pieces, batch)
        and pieces != batch
        and _is_recurrent(graph, state)
        and not _is_recurrent(graph, view)
    )


def _is_recurrent(graph: Graph, node: Node) -> bool:
    return node.module is not None and graph.modules[node.module].class_name in _RECURRENT


def _finding_on_state(starts: BackwardStarts, view: Node, state: Node) -> Finding:
    viewed = frame_of(starts.graph, view)
    before, after = (format_shape(output_shape(one)) for one in (state, view))
    return SCRAMBLED.finding(
        text=f"{line_of(viewed)} makes {after} of {before}, which an RNN returned, by a view, which keeps "
        "the elements in their order. They go along axis 0, so one row has parts of different sequences.",
        places=(*place_of("viewed", viewed), *place_of("backward", starts.backward)),
        remedy=f"At {line_of(viewed)}, bring the sequences to the front first: state.transpose(0, 1).flatten(1), where "
        "state is what the view is taken of.",
    )


def _finding(starts: BackwardStarts, view: Node, scores: Node, loss: Node) -> Finding:
    viewed, reduced = frame_of(starts.graph, view), frame_of(starts.graph, loss)
    if len(output_shape(view)) == 2:
        moved = "move the axis first: scores.movedim(1, -1), where scores is what the view is taken of."
    else:
        moved = "move the axis instead: scores.movedim(-1, 1), where scores is what the view is taken of."
    before, after = (format_shape(output_shape(one)) for one in (scores, view))
    return SCRAMBLED.finding(
        text=f"{line_of(viewed)} makes {after} of {before} by a view, which keeps the elements in their order. The "
        "loss takes axis 1 for the classes, and finds scores of several classes and positions mixed up there.",
        places=(
            *place_of("viewed", viewed),
            *place_of("loss", reduced if reduced != viewed else None),
            *place_of("backward", starts.backward),
        ),
        remedy=f"At {line_of(viewed)}, {moved}",
    )
