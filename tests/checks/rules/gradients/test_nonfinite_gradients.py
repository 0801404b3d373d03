"""Losses and gradients that are NaN or Inf, as findings, on graphs made by hand."""

import math

import pytest
from factories import gradient_stats, gradient_through, graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import gradient_notes
from gradinspect.checks.facts.backward_calls import BackwardEnded, NonfiniteLoss
from gradinspect.checks.facts.graphs import FirstNonfinite, NonfiniteValue
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.gradients.nonfinite_gradients import loss_findings, nonfinite_findings
from gradinspect.graph import Frame, Gradients, GradientStats, Hook, NodeGradients, SavedValue

MADE = Frame(file="train.py", line=7, code="p = f(h)")
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
BAD = gradient_stats(math.inf, bad=3)


def found(name: str, came: GradientStats, went: GradientStats, *, is_scaling: bool = False) -> list[Finding]:
    """What is said of a node that received one gradient and returned another."""
    recorded = gradient_through(name, came, went)
    return list(nonfinite_findings(BackwardEnded(recorded, gradient_notes(recorded), BACKWARD, lambda: is_scaling)))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("SqrtBackward0", "The derivative of a root is infinite at 0."),
        ("LogBackward0", "The derivative of a logarithm is infinite at 0."),
        ("FlipBackward0", "The cause is unknown."),
    ],
)
def test_the_node_that_made_it_non_finite_has_a_line_and_a_reason(name: str, why: str) -> None:
    """And whom it reaches; without a known reason the debugger is offered."""
    (finding,) = found(name, gradient_stats(1.0), BAD)

    assert finding.code == "GI501"
    assert why in finding.text
    assert finding.text.startswith("Infinity reaches weight: ")
    assert [(place.role, place.line) for place in finding.places] == [("made", 7), ("backward", 9)]
    assert ("gradinspect step" in finding.remedy) == ("unknown" in why)


@pytest.mark.parametrize(("dtype", "is_found"), [("float16", False), ("float32", True), ("bfloat16", True)])
def test_a_gradient_scaler_overflows_in_half_precision_only(dtype: str, is_found: bool) -> None:
    """The dtype of the first gradients that are not finite tells; without a scaler an overflow is a mistake."""
    bad = replace(BAD, dtype=dtype)

    assert bool(found("MulBackward0", gradient_stats(1.0), bad, is_scaling=True)) == is_found
    assert len(found("MulBackward0", gradient_stats(1.0), bad)) == 1


def test_whether_gradients_are_scaled_is_asked_only_where_it_matters() -> None:
    """To find out goes through every object of the program."""

    def ask() -> bool:
        raise AssertionError

    for went in (gradient_stats(1.0), BAD):
        recorded = gradient_through("MulBackward0", gradient_stats(1.0), went)
        findings = list(nonfinite_findings(BackwardEnded(recorded, gradient_notes(recorded), BACKWARD, ask)))

        assert len(findings) == (went is BAD)


def test_a_value_of_the_forward_pass_is_named() -> None:
    """The operator that made it; what came from outside is looked for there."""
    recorded = graph(op("LogBackward0", 1, frame=0), leaf("w", 2), frames=(MADE,))
    (made,) = loss_findings(
        NonfiniteLoss(recorded, NonfiniteValue(node=0, label="f32[2] with Inf", is_nan=False), BACKWARD)
    )
    (given,) = loss_findings(NonfiniteLoss(recorded, NonfiniteValue(node=None, label="x"), BACKWARD))

    assert made.code == given.code == "GI502"
    assert made.text.endswith("f32[2] with Inf, made by Log. The logarithm of 0 is infinite.")
    assert [(place.role, place.line) for place in made.places] == [("made", 7), ("backward", 9)]
    assert made.remedy == "At train.py:7, clamp its input: x.clamp(min=1e-8)."
    assert "neither is x, which came into the graph from outside" in given.text
    assert [place.role for place in given.places] == ["backward"]


def test_zero_times_infinity_is_told_from_overflow() -> None:
    """NaN where the incoming gradient is 0 comes from a mask; infinity, or NaN from other numbers, does not."""
    came = replace(gradient_stats(1.0), num_zeros=3, num_elements=4)
    (masked,) = found("SqrtBackward0", came, replace(BAD, norm=math.nan))
    (early,) = found("SqrtBackward0", replace(came, num_zeros=2), replace(BAD, norm=math.nan))
    (infinite,) = found("SqrtBackward0", came, BAD)

    assert "0 * inf is NaN" in masked.text
    assert "torch.where(mask, x, 1.0)" in masked.remedy
    assert "elements NaN" in early.text
    assert "0 * inf" not in early.text
    assert "elements infinite" in infinite.text
    assert "0 * inf" not in infinite.text


@pytest.mark.parametrize(
    ("operand", "words", "remedy"),
    [
        ("Log", "infinite or NaN in the forward pass already, made by log, though the loss is finite. The logarithm of "
         "0 is infinite. The logarithm of a negative number is NaN.", "At train.py:7, clamp its input"),
        ("Acos", "NaN in the forward pass already, made by acos, though the loss is finite. Outside -1 and 1 it is "
         "NaN.", "At train.py:7, clamp its input with a margin"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("reader", [0, 1])
def test_a_factor_that_was_not_finite_in_the_forward_pass(reader: int, operand: str, words: str, remedy: str) -> None:
    """It is named instead of the product, which is the root, or read by it."""
    one, nan, made_by = gradient_stats(1.0), replace(BAD, norm=math.nan), op(f"{operand}Backward0", None, frame=0)
    product = op("MulBackward0", reader + 1, reader + 2, frame=1)
    recorded = graph(
        *[op("SinBackward0", 1)] * reader, product, made_by, leaf("w", 2), frames=(MADE, replace(MADE, line=8)),
        gradients=Gradients(nodes=(
            *[NodeGradients(node=0, order=0, incoming=(one,), outgoing=(one,))] * reader,
            NodeGradients(node=reader, order=1, incoming=(one,), outgoing=(nan, nan)),
        )),
    )  # fmt: skip
    (finding,) = nonfinite_findings(BackwardEnded(recorded, gradient_notes(recorded), BACKWARD))
    same_line = replace(recorded, nodes=(*recorded.nodes[:reader], replace(product, frame=0), *recorded.nodes[-2:]))
    (at_one_line,) = nonfinite_findings(BackwardEnded(same_line, gradient_notes(same_line), BACKWARD))

    assert finding.text.startswith(f"NaN reaches w: mul at train.py:8 multiplies by what was {words}")
    assert finding.text.endswith("(MulBackward0 received a finite gradient and made 6 of 20 elements NaN.)")
    assert finding.remedy.startswith(remedy)
    assert [(place.role, place.line) for place in finding.places] == [("made", 7), ("used", 8), ("backward", 9)]
    assert [(place.role, place.line) for place in at_one_line.places] == [("made", 7), ("backward", 9)]


def test_a_square_reads_what_was_not_finite() -> None:
    """It does not multiply by it."""
    one, nan = gradient_stats(1.0), replace(BAD, norm=math.nan)
    square = SavedValue(name="_saved_exponent", kind="float", value=2.0)
    recorded = graph(
        op("PowBackward0", 1, frame=1, saved=(square,)), op("LogBackward0", 2, frame=0), leaf("w", 2),
        frames=(MADE, replace(MADE, line=8)),
        gradients=Gradients(nodes=(NodeGradients(node=0, order=0, incoming=(one,), outgoing=(nan,)),)),
    )  # fmt: skip
    (finding,) = nonfinite_findings(BackwardEnded(recorded, gradient_notes(recorded), BACKWARD))

    assert finding.text.startswith("pow at train.py:8 reads what was infinite or NaN in the forward pass already, made")
    assert finding.remedy.startswith("At train.py:7, clamp its input")


@pytest.mark.parametrize(("name", "is_masked"), [("SoftmaxBackward0", False), ("SqrtBackward0", True)])
def test_the_root_itself_may_be_to_blame(name: str, *, is_masked: bool) -> None:
    """It is named by its class and line; a softmax over masked values is not masked by its own result."""
    came = replace(gradient_stats(1.0), num_zeros=6)
    ran = NodeGradients(node=0, order=0, incoming=(came,), outgoing=(replace(BAD, norm=math.nan),))
    recorded = graph(
        op(name, 1, frame=0), op("MaskedFillBackward0", 2), leaf("w", 2), frames=(MADE,),
        gradients=Gradients(nodes=(ran,)),
    )  # fmt: skip
    (finding,) = nonfinite_findings(BackwardEnded(recorded, gradient_notes(recorded), BACKWARD))

    operator = name.partition("Backward")[0].lower()
    assert finding.text.startswith(f"{operator} at train.py:7 makes NaN from a finite gradient.")
    assert f"({name} made 3 of 10 elements NaN.)" in finding.text
    assert ("0 * inf" in finding.text) == is_masked


def test_the_call_that_made_the_first_nan_is_named() -> None:
    """With its own reason instead of that of what it led to; a product with 0 is what is to be changed."""
    recorded = graph(op("SoftmaxBackward0", 1, frame=0), leaf("w", 2), frames=(MADE,))
    value = NonfiniteValue(node=0, label="f32[2] with NaN")
    divided, masked = Frame(file="train.py", line=3, code="a / b"), Frame(file="train.py", line=4, code="a * m")

    def led_back(op: str, masked: Frame | None = None) -> Finding:
        first = FirstNonfinite(op=op, is_nan=True, made=divided, masked=masked)
        (found,) = loss_findings(NonfiniteLoss(recorded, value, BACKWARD, first=first))
        return found

    by_zero, with_zero, mean = led_back("truediv"), led_back("tensor", masked=masked), led_back("cross_entropy")

    assert by_zero.text.endswith("was made by truediv at train.py:3. 0 / 0 is NaN.")
    assert "no softmax" not in by_zero.text
    assert [(place.role, place.line) for place in by_zero.places] == [("first", 3), ("made", 7), ("backward", 9)]
    assert by_zero.remedy.startswith("At train.py:3, keep the divisor away from 0")
    assert [place.role for place in with_zero.places] == ["first", "masked", "made", "backward"]
    assert with_zero.remedy.startswith("At train.py:4, use torch.where(mask, x, 0.0)")
    assert "The mean of no elements is NaN." in mean.text


def test_an_operator_on_the_line_of_the_loss_has_its_own_reason() -> None:
    """That of its node, if there is one of that name; a question if nothing is known."""
    recorded = graph(
        op("NegBackward0", 1, frame=0), op("LogBackward0", 2, frame=0), op("SigmoidBackward0", 3), leaf("w", 2),
        frames=(MADE,),
    )  # fmt: skip
    value = NonfiniteValue(node=0, label="the loss itself", is_nan=False)
    log, unknown = (
        next(
            loss_findings(
                NonfiniteLoss(recorded, value, BACKWARD, first=FirstNonfinite(op=name, is_nan=False, made=MADE))
            )
        )
        for name in ("log", "lgamma")
    )

    assert log.text.endswith("made by Neg. The logarithm of 0 is infinite.")
    assert "logsigmoid() of the input" in log.remedy
    assert unknown.remedy == "Which value that train.py:7 reads is 0, negative, very large or not finite itself?"


def test_one_of_several_calls_on_a_line_is_told_apart() -> None:
    """On the line of the loss, and on another one."""
    made = replace(MADE, code="loss = a.log() + b.log()")
    recorded = graph(op("NegBackward0", 1, frame=0), leaf("w", 2), frames=(made,))
    value = NonfiniteValue(node=0, label="the loss itself", is_nan=False)
    here, before = (
        next(
            loss_findings(
                NonfiniteLoss(
                    recorded, value, BACKWARD,
                    first=FirstNonfinite(op="log", is_nan=False, made=line, number=2, num_alike=2),
                )
            )
        )
        for line in (made, replace(made, line=3))
    )  # fmt: skip

    which = "The first infinity that it was computed from was made by b.log(), the 2nd of 2 calls of log"
    assert here.text.endswith(f"made by Neg. {which} on that line. The logarithm of 0 is infinite.")
    assert before.text.endswith(f"made by Neg. {which} at train.py:3. The logarithm of 0 is infinite.")


def test_the_reason_of_another_operator_on_the_line_stands_alone() -> None:
    """A division there, whatever a logarithm has made."""
    recorded = graph(op("DivBackward0", 1, 2, frame=0), leaf("v", 2), leaf("w", 2), frames=(MADE,))
    value = NonfiniteValue(node=0, label="f32[2] with Inf", is_nan=False)
    first = FirstNonfinite(op="log", is_nan=False, made=MADE, number=2, num_alike=2)
    (found,) = loss_findings(NonfiniteLoss(recorded, value, BACKWARD, first=first))

    assert found.text.endswith("made by Div. Division by 0 is infinite.")


def test_a_value_from_outside_is_asked_about() -> None:
    """Also where the first operator that read it is known."""
    recorded = graph(op("AddmmBackward0", 1, frame=0), leaf("w", 2), frames=(MADE,))
    first = FirstNonfinite(op="linear", is_nan=True, made=MADE)
    findings = [
        next(loss_findings(NonfiniteLoss(recorded, NonfiniteValue(node=None, label="x"), BACKWARD, first=one)))
        for one in (None, first)
    ]

    assert {one.remedy for one in findings} == {
        "Does x come from data in which values are missing, or from an earlier update of the weights?"
    }


@pytest.mark.parametrize("is_leaf", [True, False])
def test_a_hook_that_makes_it_non_finite_is_named(is_leaf: bool) -> None:
    """Not the node that made the finite gradient that the hook got, nor the one that received another."""
    hooked = gradient_through("SqrtBackward0", gradient_stats(1.0), BAD if is_leaf else gradient_stats(1.0))
    assert hooked.gradients is not None
    nodes, ran = list(hooked.nodes), list(hooked.gradients.nodes)
    place = 2 if is_leaf else 1
    nodes[place] = replace(nodes[place], hooks=(Hook(kind="tensor", name="unit"), Hook(kind="post", name="after")))
    if is_leaf:
        ran[1] = replace(ran[1], outgoing=(gradient_stats(1.0),))
    else:
        ran[1] = replace(ran[1], incoming=(BAD,), outgoing=(BAD,))
        ran[2] = replace(ran[2], incoming=(BAD,))
    recorded = replace(hooked, nodes=tuple(nodes), gradients=replace(hooked.gradients, nodes=tuple(ran)))
    notes = gradient_notes(recorded)
    (finding,) = nonfinite_findings(BackwardEnded(recorded, notes, BACKWARD, lambda: False))

    owner = "weight" if is_leaf else "what sqrt gives at train.py:7"
    assert finding.text == (
        f"NaN or Inf reaches weight: unit, a hook on {owner}, gets a finite gradient and returns one that is not."
    )
    assert finding.places[0].role == ("backward" if is_leaf else "hooked")
    assert notes[0].hooks == ("unit",)


def test_a_hook_that_gets_what_is_not_finite_is_not_to_blame() -> None:
    """Nor one after a node."""
    recorded = gradient_through("SqrtBackward0", gradient_stats(1.0), BAD)
    for kind in ("tensor", "post"):
        nodes = list(recorded.nodes)
        nodes[2] = replace(nodes[2], hooks=(Hook(kind=kind, name="unit"),))

        (note,) = [one for one in gradient_notes(replace(recorded, nodes=tuple(nodes))) if one.kind == "non-finite"]
        assert (note.node, note.hooks) == (1, ())


def test_a_hook_is_not_blamed_where_what_it_got_is_not_known() -> None:
    """That of a root gets what the program gives; and compiled autograd shows gradients at leaves alone."""
    recorded = gradient_through("SqrtBackward0", gradient_stats(1.0), BAD)
    assert recorded.gradients is not None
    hook, ran = (Hook(kind="tensor", name="unit"),), recorded.gradients.nodes
    root = replace(recorded.nodes[0], hooks=hook)
    first = replace(ran[0], incoming=(BAD,), outgoing=(BAD, None))
    of_root = replace(
        recorded,
        nodes=(root, *recorded.nodes[1:]),
        gradients=Gradients(nodes=(first, replace(ran[1], incoming=(BAD,)))),
    )
    at_leaf = replace(
        recorded,
        nodes=(*recorded.nodes[:2], replace(recorded.nodes[2], hooks=hook)),
        gradients=Gradients(nodes=(ran[2],), at_leaves_only=True),
    )

    for graph_of_unknown in (of_root, at_leaf):
        assert [note for note in gradient_notes(graph_of_unknown) if note.kind == "non-finite"] == []
