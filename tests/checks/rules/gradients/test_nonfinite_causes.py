"""Why a value or a derivative is not finite, on graphs made by hand."""

import pytest
from factories import graph, op
from msgspec.structs import replace

from gradinspect.checks.rules.gradients.nonfinite_causes import derivative_cause, nan_operand, value_cause
from gradinspect.graph import Frame, Graph, Node, SavedValue, TensorInfo

MASK = Frame(file="train.py", line=4, code="scores.masked_fill(mask, -inf)")


def made(dtype: str, *nodes: Node) -> Graph:
    """Make a chain of which the first node has a dtype."""
    first = replace(nodes[0], forward_outputs=(TensorInfo(shape=(2, 3), dtype=dtype),))
    return graph(first, *nodes[1:], frames=(MASK,))


def test_the_derivative_of_an_operator() -> None:
    """By its class, with a remedy that its dtype can represent; others have none."""
    half = made("float16", op("SqrtBackward0", None))
    causes = [derivative_cause(one, one.nodes[0]) for one in (made("float32", op("SqrtBackward0", None)), half)]
    unknown = graph(op("SinBackward0", None))

    assert [cause and cause.why for cause in causes] == ["The derivative of a root is infinite at 0."] * 2
    assert causes[0] is not None
    assert causes[1] is not None
    assert causes[0].remedy == "Clamp its input: x.clamp(min=1e-8)."
    assert "1e-8" not in causes[1].remedy
    assert derivative_cause(unknown, unknown.nodes[0]) is None


@pytest.mark.parametrize(
    ("before", "remedy"),
    [
        ("SoftmaxBackward0", "Use log_softmax() of the input instead of the logarithm of softmax()."),
        (
            "SigmoidBackward0",
            "Use torch.nn.functional.logsigmoid() of the input instead of the logarithm of sigmoid().",
        ),
        ("ReluBackward0", "Clamp its input: x.clamp(min=1e-8)."),
    ],
)
def test_the_logarithm_of_a_function_has_a_stable_form(before: str, remedy: str) -> None:
    """Of a root of that function there is none."""
    logarithm = made("float32", op("LogBackward0", 1), op(before, None))
    root = made("float32", op("SqrtBackward0", 1), op(before, None))
    log_cause, root_cause = (derivative_cause(one, one.nodes[0]) for one in (logarithm, root))

    assert log_cause is not None
    assert root_cause is not None
    assert (log_cause.remedy, root_cause.remedy) == (remedy, "Clamp its input: x.clamp(min=1e-8).")


def test_a_softmax_is_to_blame_where_its_input_was_masked() -> None:
    """The line that masked is the one to change."""
    masked = made("float32", op("SoftmaxBackward0", 1), op("MaskedFillBackward0", None, frame=0))
    plain = made("float32", op("SoftmaxBackward0", 1), op("AddmmBackward0", None))
    cause = derivative_cause(masked, masked.nodes[0])

    assert cause is not None
    assert (cause.where, [place.role for place in cause.places]) == (MASK, ["masked"])
    assert derivative_cause(plain, plain.nodes[0]) is None
    alone = made("float32", op("SoftmaxBackward0", None))
    assert derivative_cause(alone, alone.nodes[0]) is None
    assert value_cause(plain, plain.nodes[0], is_nan=True) is None
    assert value_cause(masked, masked.nodes[0], is_nan=True) is not None


def test_the_first_input_of_a_logarithm_decides() -> None:
    """Not another one, as of an operator of several."""
    logarithm = made("float32", op("LogBackward0", None, 1), op("SoftmaxBackward0", None))
    cause = derivative_cause(logarithm, logarithm.nodes[0])

    assert cause is not None
    assert cause.remedy == "Clamp its input: x.clamp(min=1e-8)."


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ((op("MulBackward0", 1, 2), op("LogBackward0", None), op("ReluBackward0", None)), 1),
        ((op("MulBackward0", 1, 2), op("LogBackward0", None), op("SqrtBackward0", None)), None),  # either of the two
        ((op("MulBackward0", 1, 1), op("LogBackward0", None)), 1),
        ((op("AddBackward0", 1, None), op("LogBackward0", None)), None),  # no product
        ((op("MulBackward0", 1, None), op("SoftmaxBackward0", 2), op("MaskedFillBackward0", None)), 1),
        ((op("MulBackward0", 1, None), op("SoftmaxBackward0", 2), op("AddmmBackward0", None)), None),
        ((op("MulBackward0", 1, None), op("ViewBackward0", 2), op("LogBackward0", None)), 2),
    ],
)
def test_the_operand_of_a_product_that_was_nan_already(nodes: tuple[Node, ...], found: int | None) -> None:
    """If there is one only whose operator can make NaN, past views."""
    assert nan_operand(graph(*nodes), nodes[0]) == found


@pytest.mark.parametrize(
    ("exponent", "found", "why"), [(2.0, 2, None), (0.5, None, "A power below 1"), (None, None, "A")]
)
def test_a_square_of_what_was_nan_already(exponent: float | None, found: int | None, why: str | None) -> None:
    """Its derivative is finite where its input is; that of a root is not."""
    saved = () if exponent is None else (SavedValue(name="_saved_exponent", kind="float", value=exponent),)
    nodes = op("PowBackward0", 1, saved=saved), op("SubBackward0", 2, None), op("LogBackward0", None)
    recorded = graph(*nodes)
    cause = derivative_cause(recorded, nodes[0])

    assert nan_operand(recorded, nodes[0]) == found
    assert (cause is None) == (why is None)
    assert cause is None or cause.why.startswith(why or "")


def test_a_value_that_is_not_finite() -> None:
    """The mean of nothing, half precision, and what the operator itself makes; else nothing is known."""

    def cause(node: Node, dtype: str, *, is_nan: bool) -> str | None:
        found = value_cause(made(dtype, node), made(dtype, node).nodes[0], is_nan=is_nan)
        return found and found.why

    empty = op("MeanBackward1", None, saved=(SavedValue(name="_saved_self_sym_sizes", kind="tuple", value=(0, 3)),))
    full = op("MeanBackward1", None, saved=(SavedValue(name="_saved_self_sym_sizes", kind="tuple", value=(2, 3)),))

    assert cause(empty, "float32", is_nan=True) == "The mean of no elements is NaN."
    assert cause(full, "float32", is_nan=True) is None
    assert cause(op("LogBackward0", None), "float32", is_nan=True) == "The logarithm of a negative number is NaN."
    assert cause(op("MulBackward0", None), "float16", is_nan=False) == "float16 is infinite above 65,504."
    assert cause(op("MulBackward0", None), "float16", is_nan=True) is None
    assert cause(op("MulBackward0", None), "float32", is_nan=False) is None


def test_a_division_by_a_constant_is_not_to_blame() -> None:
    """What it is given was infinite already; a divisor that is learned, or has several values, may be 0."""
    constant, learned = (
        graph(op("DivBackward0", 1, None), op("LogBackward0", None)),
        graph(op("DivBackward0", 1, 1), op("LogBackward0", None)),
    )

    assert value_cause(constant, constant.nodes[0], is_nan=False) is None
    assert value_cause(learned, learned.nodes[0], is_nan=False) is not None


@pytest.mark.parametrize(("reader", "is_found"), [("MulBackward0", True), ("NllLossBackward0", False)])
def test_masked_logits_make_products_of_0_and_infinity(reader: str, is_found: bool) -> None:
    """A finite mask is advised where a product reads the logarithms; a loss may select a masked one."""
    masked = graph(
        op(reader, 1), op("LogSoftmaxBackward0", 2), replace(op("MaskedFillBackward0", None), frame=0), frames=(MASK,)
    )
    cause = value_cause(masked, masked.nodes[1], is_nan=False)

    assert (cause is not None) == is_found
    assert cause is None or (cause.where == MASK and "torch.finfo(x.dtype).min" in cause.remedy)
