"""Rows of the gradient tables, chosen by what they are."""

import pytest
from factories import gradient_stats as stats
from factories import graph, leaf, op

from gradinspect.analyses.gradients.choice import (
    chosen_flow,
    chosen_moves,
    chosen_nodes_that_ran,
    chosen_parameters,
    chosen_slices,
)
from gradinspect.analyses.gradients.observed import FlowRow, ParameterRow
from gradinspect.analyses.gradients.steps import Move
from gradinspect.analyses.gradients.timeline import NodeSlice
from gradinspect.analyses.selection.rows import RowChoice
from gradinspect.graph import Graph, ModuleCall, NodeGradients


def model() -> Graph:
    """Two layers."""
    return graph(
        op("AddmmBackward0", 1, module=1), op("MulBackward0", 2, module=2), leaf("fc.weight", 4),
        modules=(
            ModuleCall(path="", class_name="Net"), ModuleCall(path="fc", class_name="Linear", parent=0),
            ModuleCall(path="act", class_name="ReLU", parent=0), ModuleCall(path="0", class_name="Linear", parent=0),
        ),
    )  # fmt: skip


INDEX = FlowRow(path="0", class_name="Linear", call=1, depth=1, node=0, stats=stats(0.1))
FLOW = tuple(
    FlowRow(path=path, class_name=name, call=1, depth=depth, node=0, stats=stats(norm))
    for path, name, depth, norm in (("", "Net", 0, 2.0), ("fc", "Linear", 1, 2.0), ("act", "ReLU", 1, 0.5))
)
LEAVES = (
    ParameterRow(node=2, name="fc.weight", stats=stats(0.1), weight_norm=1.0, num_added=1, update_norm=0.5),
    ParameterRow(node=3, name="w", stats=None, weight_norm=1.0, num_added=1),
)
RAN = (
    NodeGradients(node=0, order=0, incoming=(stats(1.0),), outgoing=(stats(0.5, zeros=5),), seconds=0.001),
    NodeGradients(node=1, order=1, incoming=(stats(0.5),), seconds=0.002),
)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (RowChoice(where="class=Linear"), ["fc"]), (RowChoice(module="act"), ["act"]),
        (RowChoice(sort="norm"), ["", "fc", "act"]), (RowChoice(where="update>0"), []),
        (RowChoice(where="module=model"), [""]), (RowChoice(module="model.0"), ["0"]),
    ],
)  # fmt: skip
def test_module_calls(choice: RowChoice, expected: list[str]) -> None:
    """By class, module and norm; the outermost has the name that it has on the screen."""
    assert expected == [
        row.path for row in chosen_flow(model(), (*FLOW, INDEX), choice) if row is not INDEX or choice.module
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (RowChoice(module="fc"), ["fc.weight"]), (RowChoice(where="norm>0.05"), ["fc.weight"]),
        (RowChoice(where="update>0.4 and weight<1"), ["fc.weight"]), (RowChoice(where="class=Linear"), []),
        (RowChoice(sort="name"), ["fc.weight", "w"]),
    ],
)  # fmt: skip
def test_parameters(choice: RowChoice, expected: list[str]) -> None:
    """By module, name, norm and ratios, in one call and in several."""
    moves = [Move(name=row.name, rows=(None, row)) for row in LEAVES]

    assert expected == [row.name for row in chosen_parameters(model(), LEAVES, choice)]
    if choice.where is None or "update" not in choice.where:
        assert expected == [move.name for move in chosen_moves(model(), moves, choice)]


def test_nodes() -> None:
    """By what they are, what arrived, and how long they took."""
    slices = [NodeSlice(node=ran.node, thread=0, start_s=0.0, seconds=ran.seconds or 0.0) for ran in RAN]
    slow = RowChoice(where="ms>1.5")

    assert [ran.node for ran in chosen_nodes_that_ran(model(), RAN, RowChoice(where="norm>0.6 and zeros>=50%"))] == [0]
    assert [ran.node for ran in chosen_nodes_that_ran(model(), RAN, slow)] == [1]
    assert [piece.node for piece in chosen_slices(model(), slices, slow)] == [1]
    assert [piece.node for piece in chosen_slices(model(), slices, RowChoice(module="fc", sort="ms"))] == [0]
