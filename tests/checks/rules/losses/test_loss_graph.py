"""What the rules about losses read in a graph, on graphs made by hand."""

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.checks.rules.losses.loss_graph import (
    axis_of,
    is_activation_module,
    made_input,
    maker,
    module_words,
    name_of_module,
    name_of_softmax,
    output_shape,
    readers_of,
)
from gradinspect.graph import Frame, ModuleCall, SavedValue

VIEW, LINES = "ViewBackward0", (Frame(file="m.py", line=1, code="y = f(x)"), Frame(file="m.py", line=2, code="loss"))
MODULES = (ModuleCall(path="", class_name="Net"), ModuleCall(path="act", class_name="Softmax"))


def test_what_made_an_input_is_looked_for_past_views() -> None:
    """Of the first input only; what needs no gradient was made by nothing."""
    recorded = graph(
        op("AddBackward0", 1, 5), op(VIEW, 2, 5), op("IndexBackward0", 3, None), op("ExpBackward0", 4),
        leaf("w", 2), op("SumBackward0", None, 4), op(VIEW, None, 3), op(VIEW),
    )  # fmt: skip
    nodes = recorded.nodes
    inputs = [made_input(recorded, node) for node in nodes[:6]]

    assert [None if made is None else (made.number, made.is_direct) for made in inputs] == [
        (3, False), (3, False), (3, True), (4, True), None, None,
    ]  # fmt: skip
    assert [maker(recorded, number) is None for number in range(8)] == [False] * 6 + [True] * 2
    assert readers_of(recorded) == {1: [0], 2: [0], 3: [0], 4: [3, 5], 5: [0, 0]}


@pytest.mark.parametrize(
    ("dim", "axis"), [(0, 0), (1, 1), (-1, 2), (-3, 0), (2**64 - 1, 2), (2**64 - 3, 0), (None, None), ("1", None)]
)
def test_the_axis_of_a_softmax_is_counted_from_the_front(dim: int | str | None, axis: int | None) -> None:
    """Also where torch shows a negative number as an unsigned one."""
    node = op("SoftmaxBackward0", shape=(4, 5, 6), saved=(
        SavedValue(name="_saved_result", kind="str", value="x"), SavedValue(name="_saved_dim", kind="int", value=dim),
    ))  # fmt: skip

    assert axis_of(node) == axis
    assert axis_of(op("SoftmaxBackward0")) is None


def test_the_shape_of_the_first_output() -> None:
    """Empty if it is not known."""
    node = op("MaxBackward0", shape=(4,))
    first = node.forward_outputs[0]
    several = replace(node, forward_outputs=(first, None))
    unknown = replace(node, forward_outputs=(None, first))

    assert [output_shape(one) for one in (node, several, unknown, replace(node, forward_outputs=()))] == [
        (4,), (4,), (), (),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code", "module", "reader", "named"),
    [
        ("SoftmaxBackward0", "loss", None, 0, "softmax"),
        ("LogSoftmaxBackward0", "loss", None, 0, "cross_entropy"),
        ("LogSoftmaxBackward0", "loss", None, 1, "log_softmax"),  # another line reads it
        ("LogSoftmaxBackward0", "loss", None, None, "log_softmax"),
        ("LogSoftmaxBackward0", "F.log_softmax(x)", None, 0, "log_softmax"),
        ("LogSoftmaxBackward0", "nn.LogSoftmax(1)(x)", None, 0, "log_softmax"),
        ("LogSoftmaxBackward0", "loss", "LogSoftmax", 0, "log_softmax"),
        ("LogSoftmaxBackward0", "loss", "Net", 0, "cross_entropy"),
    ],
)
def test_the_function_of_a_softmax(name: str, code: str, module: str | None, reader: int | None, named: str) -> None:
    """It is cross_entropy if one call made the loss too, unless the line or the module names it."""
    node = op(name, frame=0, module=None if module is None else 0)
    recorded = graph(
        node, frames=(replace(LINES[0], code=code), LINES[1]), modules=(ModuleCall(path="m", class_name=module or ""),)
    )
    loss = None if reader is None else op("NllLossBackward0", frame=reader)

    assert name_of_softmax(recorded, node, loss) == named


def test_the_module_that_made_a_node() -> None:
    """Its path and class, if it has a path; it may be nothing but that function."""
    nodes = op("SoftmaxBackward0"), op("SoftmaxBackward0", module=0), op("SoftmaxBackward0", module=1)
    recorded = graph(*nodes, modules=MODULES)

    assert [module_words(recorded, node) for node in nodes] == ["", "", " (module act, Softmax)"]
    assert [name_of_module(recorded, node) for node in nodes] == ["", "Net", "Softmax"]
    assert [is_activation_module(recorded, node) for node in nodes] == [False, False, True]
