"""Accidental broadcasting, judged on graphs made by hand."""

import pytest
from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import GrownGraph
from gradinspect.checks.facts.broadcasts import GrownOperator, Shape
from gradinspect.checks.rules.losses.broadcasts import broadcast_findings
from gradinspect.graph import Frame, Graph, Node, Storage

ERROR = Frame(file="train.py", line=3, function="step", code="error = model(x) - y")
LOSS = Frame(file="train.py", line=4, function="step", code="loss = (error**2).mean()")


def operator(
    frame: Frame = ERROR,
    learned: tuple[bool, bool] = (True, False),
    shapes: tuple[Shape, Shape] = ((8, 1), (8,)),
    number: int = 5,
) -> GrownOperator:
    """`[8, 1] - [8]`."""
    return GrownOperator(sequence_nr=number, op="sub", shapes=shapes, is_learned=learned, frame=frame)


def squared_error(*between: Node, last: str = "MeanBackward0", before: str = "AddmmBackward0") -> Graph:
    """Mean, what lies between, sub, and what made the prediction."""
    nodes = [op(last, 1, shape=(), frame=1), *between]
    start = len(nodes)
    nodes += [
        op("SubBackward0", start + 1, None, shape=(8, 8), sequence_nr=5, frame=0),
        op(before, start + 2, shape=(8, 1), frame=0),
        leaf("weight", 1, 4),
    ]
    return graph(*nodes, frames=(ERROR, LOSS), storages=(Storage(num_bytes=256),))


def test_both_lines_are_named() -> None:
    """Where it broadcasts and where it is reduced, both shapes, the number of pairs, and which side to squeeze."""
    (found,) = broadcast_findings(GrownGraph(squared_error(op("PowBackward0", 2, shape=(8, 8))), [operator()]))

    assert [(place.role, place.line) for place in found.places] == [("broadcast", 3), ("reduced", 4)]
    assert found.text == (
        "sub of [8, 1] (requires grad) and [8] (does not) broadcasts to [8, 8]. Mean reduces all 64 pairs instead of "
        "8 elements."
    )
    assert found.remedy == "Give both the same shape before train.py:3: call squeeze(-1) on the [8, 1]."


def test_the_column_is_squeezed_where_it_is_made() -> None:
    """What else reads it grows as well."""
    made = Frame(file="train.py", line=2, function="forward", code="return self.value(h)")
    here = squared_error(op("PowBackward0", 2, shape=(8, 8)))
    nodes = [replace(node, frame=2) if node.name == "AddmmBackward0" else node for node in here.nodes]
    there = replace(here, nodes=tuple(nodes), frames=(ERROR, LOSS, made))
    (found,) = broadcast_findings(GrownGraph(there, [operator()]))

    assert [(place.role, place.line) for place in found.places] == [("made", 2), ("broadcast", 3), ("reduced", 4)]
    assert found.remedy == (
        "At train.py:2, call squeeze(-1) on the [8, 1] that it makes, so that all who read it get the same shape."
    )


def test_the_sum_of_the_elements_is_a_reduction_too() -> None:
    """It says sum, and needs no operator between."""
    (found,) = broadcast_findings(GrownGraph(squared_error(last="SumBackward0"), [operator()]))

    assert "Sum reduces all 64 pairs" in found.text


@pytest.mark.parametrize(
    ("between", "last", "before"),
    [
        ((op("SoftmaxBackward0", 2, shape=(8, 8)),), "SumBackward0", "AddmmBackward0"),
        ((op("MmBackward0", 2, shape=(8, 8)),), "SumBackward0", "AddmmBackward0"),
        ((op("SumBackward1", 2, shape=(8,)),), "MeanBackward0", "AddmmBackward0"),
        ((), "MaxBackward1", "AddmmBackward0"),
        ((), "MeanBackward0", "UnsqueezeBackward0"),
        (
            (op("MulBackward0", 2, None, shape=(8, 8), saved=(saved("_saved_other", 8, 8, storage=0),)),),
            "SumBackward0",
            "AddmmBackward0",
        ),
    ],
)
def test_intentional_broadcasting_is_not_reported(between: tuple[Node, ...], last: str, before: str) -> None:
    """Softmax, a product of matrices, a sum along one side, a maximum, a dimension added on the spot, a mask."""
    assert list(broadcast_findings(GrownGraph(squared_error(*between, last=last, before=before), [operator()]))) == []


@pytest.mark.parametrize(
    "code",
    ["d = a[:, None] - b", "d = a.unsqueeze(1) - b", "d = a.view(-1, 1) - b", "d = a.reshape(n, 1) - b"],
)
def test_a_dimension_that_is_written_out_is_intentional(code: str) -> None:
    """On the line of the operator itself."""
    frame = Frame(file="train.py", line=3, code=code)

    assert list(broadcast_findings(GrownGraph(squared_error(), [operator(frame)]))) == []


@pytest.mark.parametrize("code", ["d = a - b.view(-1)", "d = model(x) - y.reshape(-1)"])
def test_to_flatten_adds_no_dimension(code: str) -> None:
    """What flattens one side is often the mistake itself."""
    frame = Frame(file="train.py", line=3, code=code)

    assert len(list(broadcast_findings(GrownGraph(squared_error(), [operator(frame)])))) == 1


@pytest.mark.parametrize("learned", [(True, True), (False, False)])
def test_two_learned_sides_are_a_ranking(learned: tuple[bool, bool]) -> None:
    """Nothing is said where both sides are learned, or none is."""
    assert list(broadcast_findings(GrownGraph(squared_error(), [operator(learned=learned)]))) == []


def test_an_operator_outside_the_graph_does_not_matter() -> None:
    """Such as one of a metric."""
    elsewhere = GrownOperator(sequence_nr=77, op="sub", shapes=((8, 1), (8,)), is_learned=(True, False), frame=None)

    assert list(broadcast_findings(GrownGraph(squared_error(), [elsewhere]))) == []


def said(*operators: GrownOperator, before: str = "AddmmBackward0", between: tuple[Node, ...] = ()) -> list[str]:
    """Return the shapes and the remedy of each finding."""
    found = broadcast_findings(GrownGraph(squared_error(*between, before=before), operators))
    return [f"{one.text}|{one.remedy.partition(': ')[2]}" for one in found]


COLUMN: tuple[Shape, Shape] = ((8, 1), (1, 8))


@pytest.mark.parametrize(
    ("shapes", "learned", "remedy"),
    [
        (((8, 1), (8,)), (True, False), "call squeeze(-1) on the [8, 1]."),
        (((8,), (8, 1)), (True, False), "call squeeze(-1) on the [8, 1]."),
        (((8,), (1, 8, 1)), (True, False), "call reshape(8) on the [1, 8, 1]."),
        (((8, 1, 4), (8, 4)), (True, False), "call squeeze(-2) on the [8, 1, 4]."),
        (((8, 1), (8, 8)), (True, False), "let what is learned have the shape [8, 8], or select what belongs to the "
         "[8, 1]."),
        (((8, 1), (1, 8)), (True, False), "call reshape(8, 1) on the [1, 8]."),
        (((8, 1), (1, 8)), (False, True), "call reshape(1, 8) on the [8, 1]."),
        (((8, 1), (8, 8)), (False, True), None),
    ],
)  # fmt: skip
def test_how_to_give_both_sides_one_shape(
    shapes: tuple[Shape, Shape], learned: tuple[bool, bool], remedy: str | None
) -> None:
    """Which side to change, and how."""
    assert [text.partition("|")[2] for text in said(operator(learned=learned, shapes=shapes))] == (
        [] if remedy is None else [remedy]
    )


def test_what_is_compared_is_counted() -> None:
    """All pairs of a column and a row; each element with several targets."""
    assert "Mean reduces all 64 pairs instead of 8 elements." in said(operator(shapes=COLUMN))[0]
    assert "Mean compares each of 8 elements with 8." in said(operator(shapes=((8, 1), (8, 8))))[0]


def test_every_operator_is_looked_at() -> None:
    """Also after one that is on purpose, has two learned sides, or grows nothing."""
    on_purpose = operator(Frame(file="train.py", line=3, code="d = a[:, None] - b"))
    others = on_purpose, operator(learned=(True, True)), operator(shapes=((8,), (8,))), operator(number=6)

    assert len(said(*others, operator())) == 1
    assert len(said(operator(), *others)) == 1


def test_pairs_of_equal_length_may_be_wanted() -> None:
    """If the graph has them of two learned sides too, the line transposes, or a parameter is compared."""
    learned = operator(learned=(True, True), shapes=COLUMN)
    transposed = Frame(file="train.py", line=3, code="d = a - b.T")

    assert len(said(operator(shapes=COLUMN))) == 1
    assert said(learned, operator(shapes=COLUMN)) == []
    assert len(said(learned, operator())) == 1  # of other lengths
    assert said(operator(transposed, shapes=COLUMN)) == []
    assert len(said(operator(transposed))) == 1
    assert said(operator(shapes=COLUMN), between=(op("ExpBackward0", 2, shape=(8, 8)),)) == []  # no error


def difference(prediction: Node, *, shapes: tuple[Shape, Shape] = ((8, 1), (8,)), function: str = "step") -> int:
    """Count the findings for the mean of a prediction's difference to something."""
    frames = (ERROR, LOSS, Frame(file="train.py", line=2, function=function, code="y = y.unsqueeze(1)"))
    recorded = graph(
        op("MeanBackward0", 1, shape=(), frame=1), op("SubBackward0", None, 2, shape=(8, 8), sequence_nr=5, frame=0),
        prediction, leaf("w", 8), frames=frames,
    )  # fmt: skip
    return len(list(broadcast_findings(GrownGraph(recorded, [operator(shapes=shapes)]))))


def test_a_dimension_that_the_same_function_added_is_intentional() -> None:
    """On either side; of another function, or an unknown line, it is not known to be."""
    assert difference(op("UnsqueezeBackward0", 3, shape=(8, 1), frame=2)) == 0
    assert difference(op("UnsqueezeBackward0", 3, shape=(8, 1), frame=2), function="a") == 1
    assert difference(op("UnsqueezeBackward0", 3, shape=(8, 1), frame=2), function="z") == 1
    assert difference(op("UnsqueezeBackward0", 3, shape=(8, 1))) == 1
    assert difference(op("ViewBackward0", 3, shape=(8, 1), frame=2)) == 1


def test_a_parameter_that_is_compared_with_rows_is_intentional() -> None:
    """As centers are, which have as many dimensions."""
    assert difference(leaf("centers", 8, 1), shapes=COLUMN) == 0
    assert difference(leaf("centers", 8, 1)) == 1


@pytest.mark.parametrize(
    ("edges", "sizes", "is_found"),
    [((2, None), (8, 8), False), ((2, 2), (8, 8), True), ((2, None), (8, 1), True), ((2, None), (9, 9), True)],
)
def test_a_mask_has_the_grown_shape(edges: tuple[int | None, ...], sizes: tuple[int, ...], *, is_found: bool) -> None:
    """What is multiplied with it is given, and as large as the result."""
    mask = op("MulBackward0", *edges, shape=(8, 8), saved=(saved("_saved_other", *sizes, storage=0),))
    power = op("PowBackward0", 2, shape=(8, 8), saved=(saved("_saved_self", 8, 8, storage=0),))

    assert bool(said(operator(), between=(mask,))) == is_found
    assert said(operator(), between=(power,))


@pytest.mark.parametrize(("edges", "is_found"), [((2, 2), True), ((2, None), False)])
def test_a_loss_in_two_pieces_reduces_all_pairs(edges: tuple[int | None, ...], *, is_found: bool) -> None:
    """As one of Huber's that is written out: of `where`, both sides are errors. With a constant it is a mask."""
    pieces = op("WhereBackward0", *edges, shape=(8, 8))

    assert bool(said(operator(), between=(pieces,))) == is_found


def test_a_square_of_two_learned_sides_is_compared_with_a_row() -> None:
    """Their sum is named with the line that compares it; without a comparison it is no mistake."""
    total = Frame(file="model.py", line=9, function="forward", code="return bias + product")
    pairs = operator(number=4, shapes=((8, 1), (8,)), learned=(True, True), frame=total)
    pairs = GrownOperator(sequence_nr=4, op="add", shapes=pairs.shapes, is_learned=(True, True), frame=total)
    compared = operator(shapes=((8, 8), (8,)))
    nodes = [
        op("MeanBackward0", 1, shape=(), frame=1),
        op("PowBackward0", 2, shape=(8, 8)),
        op("SubBackward0", 3, None, shape=(8, 8), sequence_nr=5, frame=0),
        op("AddBackward0", 4, 5, shape=(8, 8), sequence_nr=4, frame=0),
        op("AddmmBackward0", 6, shape=(8, 1), frame=0),
        op("SumBackward1", 6, shape=(8,), frame=0),
        leaf("weight", 1, 4),
    ]
    made = graph(*nodes, frames=(ERROR, LOSS))
    (found,) = broadcast_findings(GrownGraph(made, [pairs, compared]))

    assert [(place.role, place.line) for place in found.places] == [("broadcast", 9), ("compared", 3)]
    assert found.remedy == "Give both the same shape before model.py:9: call squeeze(-1) on the [8, 1]."
    assert list(broadcast_findings(GrownGraph(made, [pairs]))) == []
