"""The axis of a softmax, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.losses.softmax_axis import axis_findings
from gradinspect.graph import Frame, Graph, ModuleCall, Node, SavedValue

LINE = Frame(file="train.py", line=3, code="p = torch.log_softmax(model(x), dim=0)")


def softmax(name: str, after: int, shape: tuple[int, ...], dim: int) -> Node:
    """Make a softmax over one axis."""
    return op(name, after, shape=shape, frame=0, saved=(SavedValue(name="_saved_dim", kind="int", value=dim),))


def found(*nodes: Node) -> list[Finding]:
    """Judge a chain that ends in a weight."""
    recorded: Graph = graph(*nodes, leaf("weight", 4, 4), frames=(LINE,))
    return list(axis_findings(BackwardStarts(recorded)))


@pytest.mark.parametrize("dim", [0, -2, 2**64 - 2])
def test_a_softmax_over_the_batch(dim: int) -> None:
    """Whatever way the axis is written."""
    (finding,) = found(
        op("NllLossBackward0", 1, shape=()),
        softmax("LogSoftmaxBackward0", 2, (8, 4), dim),
        op("AddmmBackward0", 3, shape=(8, 4)),
    )

    assert "runs over axis 0, the batch, of [8, 4]" in finding.text
    assert finding.remedy == "Pass dim=1 at train.py:3."


def test_a_softmax_over_one_column() -> None:
    """Its result goes through arithmetic with constants into a mean."""
    (finding,) = found(
        op("MeanBackward0", 1, shape=()),
        op("PowBackward0", 2, shape=(8,)),
        op("SubBackward0", 3, None, shape=(8,)),
        op("SqueezeBackward1", 4, shape=(8,)),
        softmax("SoftmaxBackward0", 5, (8, 1), 1),
        op("AddmmBackward0", 6, shape=(8, 1)),
    )

    assert "every output is exactly 1" in finding.text


@pytest.mark.parametrize(
    "nodes",
    [
        (op("NllLossBackward0", 1, shape=()), softmax("LogSoftmaxBackward0", 2, (8, 4), 1), op("AddmmBackward0", 3)),
        (
            op("NllLossBackward0", 1, shape=()),
            op("ViewBackward0", 2, shape=(24, 4)),
            softmax("LogSoftmaxBackward0", 3, (8, 3, 4), 2),
            op("ViewBackward0", 4, shape=(8, 3, 4)),
        ),
        (op("MseLossBackward0", 1, shape=()), softmax("SoftmaxBackward0", 2, (8, 4), 0)),
        (
            op("SumBackward1", 1, shape=(5,)),
            op("MulBackward0", 2, None, shape=(8, 5)),
            softmax("SoftmaxBackward0", 3, (8, 1), 0),
            op("AddmmBackward0", 4, shape=(8, 1)),
        ),
        (
            op("MeanBackward0", 1, shape=()),
            op("BmmBackward0", 2, 3, shape=(8, 1, 5)),
            softmax("SoftmaxBackward0", 3, (8, 1, 1), 2),
        ),
    ],
)
def test_the_axis_of_the_classes_or_of_a_set_is_right(nodes: tuple[Node, ...]) -> None:
    """Classes on axis 1 or moved there, a learned matrix, pooling over a set, attention to one key."""
    assert found(*nodes) == []


@pytest.mark.parametrize(
    ("layer", "shape", "dim", "is_found"),
    [
        ("AddmmBackward0", (8, 4), 0, True),
        ("ConvolutionBackward0", (8, 4), 0, True),
        ("AddmmBackward0", (8, 4), 1, False),
        ("AddmmBackward0", (8, 4, 2), 0, False),  # a set of vectors, perhaps
        ("SumBackward1", (8, 4), 0, False),  # not straight from a layer
        ("AddmmBackward0", (8,), 0, False),  # one example
        ("AddmmBackward0", (8, 1), 0, False),
    ],
)
def test_before_another_loss_only_the_batch_of_a_layers_scores_is_wrong(
    layer: str, shape: tuple[int, ...], dim: int, is_found: bool
) -> None:
    """Elsewhere it may be a pooling over a set."""
    findings = found(
        op("MseLossBackward0", 1, shape=()), softmax("SoftmaxBackward0", 2, shape, dim), op(layer, 3, shape=shape)
    )

    assert [finding.text.split(", of")[0] for finding in findings] == ["softmax runs over axis 0, the batch"] * is_found


@pytest.mark.parametrize(
    ("layer", "shape", "dim", "is_found"),
    [
        ("ConvolutionBackward0", (8, 3, 6, 6), 0, True),
        ("ConvolutionBackward0", (8, 3, 6, 6), 1, False),
        ("SqueezeBackward1", (3, 6, 6), 0, False),  # without a batch
        ("BmmBackward0", (8, 3, 6, 6), 0, False),
    ],
)
def test_axis_0_of_what_a_convolution_has_made_is_the_batch(
    layer: str, shape: tuple[int, ...], dim: int, is_found: bool
) -> None:
    """Whatever loss is written by hand after it."""
    findings = found(
        op("MeanBackward0", 1, shape=()),
        op("MulBackward0", 2, None, shape=shape),
        softmax("SoftmaxBackward0", 3, shape, dim),
        op(layer, 4, shape=shape),
    )

    assert ["which a convolution has made: that is the batch" in one.text for one in findings] == [True] * is_found


def test_a_sequence_loss_takes_classes_on_the_last_axis() -> None:
    """As CTC does, of [time, batch, classes]; what stands between may have moved the axis."""

    def of(axis: int, *between: Node) -> list[Finding]:
        first = 1 + len(between)
        scores = softmax("LogSoftmaxBackward0", first + 1, (40, 12, 6), axis)
        return found(op("CtcLossBackward0", 1, shape=()), *between, scores, op("AddBackward0", first + 2))

    (time,), (batch,) = of(0), of(1)

    assert time.text.startswith("log_softmax runs over axis 0, of [40, 12, 6]; the loss expects the classes on axis 2")
    assert batch.remedy == "Pass dim=2 at train.py:3."
    assert of(2) == of(1, op("PermuteBackward0", 2, shape=(12, 40, 6))) == []


def test_a_log_likelihood_takes_classes_on_axis_1_of_any_shape() -> None:
    """Of the log of a softmax as well; the axis is named by its number, and the module by its class."""
    (of_pixels,) = found(
        op("NllLoss2DBackward0", 1, shape=()), softmax("LogSoftmaxBackward0", 2, (8, 4, 5), 2), op("AddmmBackward0", 3)
    )
    (of_log,) = found(
        op("NllLossBackward0", 1, shape=()), op("LogBackward0", 2, shape=(8, 4)),
        softmax("SoftmaxBackward0", 3, (8, 4), 0), op("AddmmBackward0", 4),
    )  # fmt: skip
    recorded = graph(
        op("NllLossBackward0", 1, shape=()),
        replace(softmax("LogSoftmaxBackward0", 2, (8, 4), 0), module=0), op("AddmmBackward0", 3), leaf("w", 4),
        frames=(LINE,), modules=(ModuleCall(path="act", class_name="LogSoftmax"),),
    )  # fmt: skip
    (of_module,) = axis_findings(BackwardStarts(recorded))

    assert of_pixels.text.startswith(
        "log_softmax runs over axis 2, of [8, 4, 5]; the loss expects the classes on axis 1"
    )
    assert of_log.text.startswith("softmax runs over axis 0, the batch")
    assert of_module.text.startswith("log_softmax (module act, LogSoftmax) runs over axis 0")
    assert of_module.remedy == "Pass dim=1 where that LogSoftmax is made."
    assert [place.role for place in of_log.places] == ["softmax"]


def test_one_column_of_a_log_is_exactly_zero() -> None:
    """In a loss or a sum of all elements; where they meet others, nothing is said."""
    column = softmax("LogSoftmaxBackward0", 2, (8, 1), 1)
    (finding,) = found(op("NllLossBackward0", 1, shape=()), column, op("AddmmBackward0", 3))
    partial = found(op("SumBackward1", 1, shape=(1,)), column, op("AddmmBackward0", 3))
    unknown = found(op("NllLossBackward0", 1, shape=()), softmax("LogSoftmaxBackward0", 2, (8, 1), 5), op("A", 3))
    empty = found(op("NllLossBackward0", 1, shape=()), softmax("LogSoftmaxBackward0", 2, (0, 1), 1), op("A", 3))

    assert "every output is exactly 0, whatever the scores are" in finding.text
    assert (partial, unknown, empty) == ([], [], [])


def test_only_what_goes_straight_into_a_log_likelihood_counts() -> None:
    """Itself, or its logarithm; a view may have moved the axis."""

    def judged(*between: str) -> int:
        last = len(between) + 1
        return len(found(
            op("NllLossBackward0", 1, shape=()),
            *(op(name, place + 2, shape=(8, 4)) for place, name in enumerate(between)),
            softmax("SoftmaxBackward0", last + 1, (8, 4), 0), op("AddmmBackward0", last + 2),
        ))  # fmt: skip

    ways = [(), ("LogBackward0",), ("ExpBackward0",), ("TBackward0",), ("LogBackward0", "TBackward0")]
    assert [judged(*way) for way in ways] == [1, 1, 0, 0, 0]
    constant = op("LogBackward0", None, shape=(8, 4))
    assert found(op("NllLossBackward0", 1, 2, shape=()), constant, softmax("SoftmaxBackward0", 3, (8, 4), 0)) == []


@pytest.mark.parametrize(
    ("name", "edges", "shape", "is_found"),
    [
        ("PowBackward0", (2,), (8, 1), True),
        ("PowBackward0", (2, 3), (8, 1), False),  # with what else is learned
        ("ExpBackward0", (2,), (8, 1), False),
        ("ViewBackward0", (2,), (8,), True),
        ("ExpandBackward0", (2,), (8, 5), False),
    ],
)
def test_one_column_is_followed_through_arithmetic_with_constants(
    name: str, edges: tuple[int, ...], shape: tuple[int, ...], *, is_found: bool
) -> None:
    """As long as its elements meet no others."""
    findings = found(
        op("MeanBackward0", 1, shape=()), op(name, *edges, shape=shape), softmax("SoftmaxBackward0", 3, (8, 1), 1)
    )

    assert bool(findings) == is_found


def test_both_lines_are_named_if_they_differ() -> None:
    """Those of the softmax and of the loss; each softmax is looked at."""
    unknown = softmax("SoftmaxBackward0", 3, (8, 4), 7)
    nodes = (
        op("NllLossBackward0", 2, 1, shape=(), frame=1), unknown, softmax("LogSoftmaxBackward0", 3, (8, 4), 0),
        op("AddmmBackward0", None),
    )  # fmt: skip
    lines = LINE, Frame(file="train.py", line=5, code="loss = nll(p, y)"), Frame(file="train.py", line=6)
    (finding,) = axis_findings(BackwardStarts(graph(*nodes, frames=lines), lines[2]))

    assert [(place.role, place.line) for place in finding.places] == [("softmax", 3), ("loss", 5), ("backward", 6)]


@pytest.mark.parametrize("loss", ["MseLossBackward0", "BinaryCrossEntropyWithLogitsBackward0"])
@pytest.mark.parametrize(
    ("shape", "rows", "is_found"),
    [((8, 5, 1), 8, True), ((8, 5, 5), 8, True), ((5, 8, 1), 8, False), ((8, 8, 1), 8, False), ((8, 5, 1), 4, False)],
)
def test_weights_over_the_batch_are_known_by_the_rows_of_the_loss(
    shape: tuple[int, ...], rows: int, is_found: bool, loss: str
) -> None:
    """If no other axis is as long."""
    findings = found(
        op(loss, 1, shape=()), op("AddmmBackward0", 2, shape=(rows, 3)),
        softmax("SoftmaxBackward0", 3, shape, 0), op("AddmmBackward0", 4, shape=shape),
    )  # fmt: skip

    assert ["which is the batch" in finding.text for finding in findings] == [True] * is_found
