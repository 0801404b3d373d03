"""What gradients say went wrong, as findings, on graphs made by hand."""

import math

import pytest
from factories import gradient_stats, graph, leaf, op
from msgspec.structs import replace

from gradinspect.checks.rules.gradient_findings import (
    NonfiniteValue,
    forward_finding,
    gradient_findings,
    lasting_findings,
    overflows_in_half,
)
from gradinspect.checks.rules.shrunk_gradients import shrunk_gradients
from gradinspect.graph import Frame, Gradients, GradientStats, Graph, NodeGradients

MADE = Frame(file="train.py", line=7, code="p = f(h)")
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")
BAD = gradient_stats(math.inf, bad=3)


def through(name: str, came: GradientStats, went: GradientStats, *, detour: bool = False) -> Graph:
    """Sum, the node in question, a weight behind it, and perhaps another way to that weight."""
    ran = (
        NodeGradients(node=0, order=0, incoming=(gradient_stats(1.0),), outgoing=(came, None)),
        NodeGradients(node=1, order=1, incoming=(came,), outgoing=(went,)),
        NodeGradients(node=2, order=2, incoming=(went,)),
    )
    return graph(
        op("AddBackward0", 1, 2 if detour else None),
        op(name, 2, frame=0),
        leaf("weight", 4),
        frames=(MADE,),
        gradients=Gradients(nodes=ran),
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("SqrtBackward0", "The derivative of a root is infinite at 0."),
        ("LogBackward0", "The derivative of a logarithm is infinite at 0."),
        ("FlipBackward0", "The reason is not known."),
    ],
)
def test_the_node_that_made_it_non_finite_has_a_line_and_a_reason(name: str, why: str) -> None:
    """And whom it reaches; without a known reason the debugger is offered."""
    (found,) = gradient_findings(through(name, gradient_stats(1.0), BAD), BACKWARD)

    assert found.code == "GI501"
    assert why in found.text
    assert found.text.endswith("It reaches weight.")
    assert [(place.role, place.line) for place in found.places] == [("made", 7), ("backward", 9)]
    assert ("gradinspect step" in found.remedy) == ("not known" in why)


def test_a_loss_that_is_not_finite_explains_all_that_follows() -> None:
    """Neither the gradients that are not, nor those that die, are told again."""
    assert list(gradient_findings(through("SqrtBackward0", gradient_stats(1.0), BAD), None, was_finite=False)) == []
    dead = through("SqrtBackward0", gradient_stats(1.0), gradient_stats(0.0))
    assert list(gradient_findings(dead, None, was_finite=False)) == []


@pytest.mark.parametrize("name", ["RoundBackward0", "ClampBackward1", "ReluBackward0", "MulBackward0"])
def test_a_killed_gradient_names_whom_it_starves(name: str) -> None:
    """With a reason that fits the operator."""
    (found,) = gradient_findings(through(name, gradient_stats(1.0), gradient_stats(0.0)), BACKWARD)

    assert found.code == "GI601"
    assert found.subjects == ("weight",)
    assert f"{name} got a gradient and passed on zeros only." in found.text
    assert "not known" not in found.text


@pytest.mark.parametrize(
    ("name", "went", "detour", "is_found"),
    [
        ("SoftmaxBackward0", 1e-8, False, True),
        ("SigmoidBackward0", 1e-7, False, True),
        ("SoftmaxBackward0", 1e-3, False, False),
        ("SoftmaxBackward0", 1e-8, True, False),
        ("SoftmaxBackward0", 0.0, False, False),
        ("LogSoftmaxBackward0", 1e-8, False, False),
        ("MulBackward0", 1e-8, False, False),
    ],
)
def test_a_gradient_that_all_but_dies(name: str, went: float, detour: bool, is_found: bool) -> None:
    """In a function that squashes, and where no other way leads to the weight. Exactly zero is told as killed."""
    found = list(shrunk_gradients(through(name, gradient_stats(1.0), gradient_stats(went), detour=detour)))

    assert [trouble.starved for trouble in found] == [("weight",)] * is_found


def test_how_much_is_left_is_told() -> None:
    """Both norms."""
    (found,) = gradient_findings(through("SoftmaxBackward0", gradient_stats(2.0), gradient_stats(3e-8)), BACKWARD)

    assert found.text.startswith("SoftmaxBackward0 got a gradient of norm 2.0e+00 and passed on 3.0e-08. Its outputs")


@pytest.mark.parametrize(("dtype", "is_half"), [("float16", True), ("float32", False), ("bfloat16", False)])
def test_a_gradient_scaler_overflows_in_half_precision_only(dtype: str, is_half: bool) -> None:
    """The dtype of the first gradients that are not finite tells."""
    recorded = through("MulBackward0", gradient_stats(1.0), replace(BAD, dtype=dtype))

    assert overflows_in_half(recorded) == is_half
    assert not overflows_in_half(through("MulBackward0", gradient_stats(1.0), gradient_stats(1.0)))


def test_a_value_of_the_forward_pass_is_named() -> None:
    """The operator that made it; what came from outside is looked for there."""
    recorded = graph(op("LogBackward0", 1, frame=0), leaf("w", 2), frames=(MADE,))
    made = forward_finding(recorded, NonfiniteValue(node=0, label="f32[2] with Inf"), BACKWARD)
    given = forward_finding(recorded, NonfiniteValue(node=None, label="x"), BACKWARD)

    assert made.code == given.code == "GI502"
    assert made.text.endswith("f32[2] with Inf, made by Log.")
    assert [(place.role, place.line) for place in made.places] == [("made", 7), ("backward", 9)]
    assert made.remedy == "At train.py:7, keep its input away from 0: x.clamp(min=1e-8)."
    assert "x is not finite either" in given.text
    assert [place.role for place in given.places] == ["backward"]


def test_a_layer_that_is_dead_once_is_no_finding() -> None:
    """Only what every call of that line shows counts; a call on another line says nothing about it."""
    dead = list(gradient_findings(through("ReluBackward0", gradient_stats(1.0), gradient_stats(0.0)), BACKWARD))
    bad = list(gradient_findings(through("SqrtBackward0", gradient_stats(1.0), BAD), BACKWARD))
    elsewhere = replace(BACKWARD, line=20)

    assert [finding.code for finding in (*dead, *bad)] == ["GI601", "GI501"]
    assert list(lasting_findings([(BACKWARD, dead), (BACKWARD, [])])) == []
    assert list(lasting_findings([(BACKWARD, dead), (elsewhere, [])])) == dead
    assert list(lasting_findings([(BACKWARD, dead), (BACKWARD, dead)])) == dead * 2
    assert list(lasting_findings([(BACKWARD, bad), (BACKWARD, [])])) == bad
    assert list(lasting_findings([(None, dead)])) == dead


def test_zero_times_infinity_is_told_from_overflow() -> None:
    """NaN where the gradient that came is 0 comes from a mask; infinity, or NaN from other numbers, does not."""
    came = replace(gradient_stats(1.0), num_zeros=3, num_elements=4)
    masked, early = (
        next(gradient_findings(through("SqrtBackward0", one, replace(BAD, norm=norm)), BACKWARD))
        for one, norm in ((came, math.nan), (replace(came, num_zeros=2), math.nan))
    )
    infinite = next(gradient_findings(through("SqrtBackward0", came, BAD), BACKWARD))

    assert "0 * inf is NaN" in masked.text
    assert "torch.where(mask, x, 1.0)" in masked.remedy
    assert "elements NaN" in early.text
    assert "0 * inf" not in early.text
    assert "elements infinite" in infinite.text
    assert "0 * inf" not in infinite.text
