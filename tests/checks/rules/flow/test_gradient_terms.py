"""Gradients in a loss: which are constants by mistake, and which by intent."""

import pytest

from gradinspect.checks.facts.value_flow import Call, DetachCause, Read
from gradinspect.checks.rules.flow.gradient_terms import LostTerm, lost_terms

WEIGHT, DATA = Read(leaf=0, is_live=True), Read(leaf=1, is_live=True)


def live(call: int) -> Read:
    """Read a result that requires grad."""
    return Read(call, is_live=True)


def dead(call: int) -> Read:
    """Read a result that does not."""
    return Read(call)


def is_parameter(leaf: int) -> bool:
    """Tell the weight from the input."""
    return leaf == WEIGHT.leaf


NETWORK = [
    Call("linear", (WEIGHT, DATA)),
    Call("grad", (live(0),), cause="gradient", wrt=(DATA,)),
    Call("norm", (dead(1),)),
]


def found(*calls: Call) -> list[LostTerm]:
    """Look at the loss that the last of these calls made, after NETWORK."""
    every = [*NETWORK, *calls]
    return list(lost_terms(every, live(len(every) - 1), is_parameter))


@pytest.mark.parametrize("op", ["torch.Tensor.add", "torch.Tensor.sub", "torch.Tensor.__radd__", "torch.stack"])
def test_a_term_that_is_added(op: str) -> None:
    """Under whatever is linear: a mean, a factor, a sign."""
    total = Call(op, (live(0), dead(2)))

    assert found(total, Call("mul", (live(3),)), Call("mean", (live(4),))) == [LostTerm(gradient=1, used=3)]


def test_a_residual_with_the_network_itself() -> None:
    """Squared u' + u: the first is a constant there, the second is not."""
    residual = Call("add", (dead(1), live(0)))

    assert found(residual, Call("pow", (live(3),)), Call("mean", (live(4),))) == [LostTerm(1, 3)]


def test_a_target_from_another_network() -> None:
    """Forces of a teacher are given, and the student's prediction is compared with them."""
    student = Call("linear", (Read(leaf=5, is_live=True),))

    assert not found(student, Call("sub", (live(3), dead(1))), Call("pow", (live(4),)))


def test_a_target_in_closed_form() -> None:
    """Forces of a potential without parameters: the prediction depends on the same places, and nothing learns them."""
    calls = [
        Call("square", (DATA,)),
        Call("grad", (live(0),), cause="gradient", wrt=(DATA,)),
        Call("linear", (WEIGHT, DATA)),
        Call("sub", (live(2), dead(1))),
        Call("pow", (live(3),)),
    ]

    assert not list(lost_terms(calls, live(4), is_parameter))


def test_the_norm_of_a_gradient_of_the_parameters_themselves() -> None:
    """Those are what the gradient was taken of, and learn all the same."""
    calls = [
        Call("linear", (WEIGHT,)),
        Call("grad", (live(0),), cause="gradient", wrt=(WEIGHT,)),
        Call("norm", (dead(1),)),
        Call("add", (live(0), dead(2))),
    ]

    assert list(lost_terms(calls, live(3), is_parameter)) == [LostTerm(gradient=1, used=3)]


def test_a_detached_target() -> None:
    """Somebody has said that it is one."""
    target = Call("torch.Tensor.detach", (dead(1),), cause="detach")

    assert not found(target, Call("sub", (live(0), dead(3))), Call("pow", (live(4),)))


def test_an_update_of_the_tensor_it_belongs_to() -> None:
    """First-order MAML, where the updated weight stands in the loss itself."""
    assert not found(Call("sub", (DATA, dead(1))), Call("pow", (live(3),)))


@pytest.mark.parametrize("op", ["mul", "div"])
def test_a_factor(op: str) -> None:
    """An adaptive weight scales another loss."""
    assert not found(Call(op, (live(0), dead(2))), Call("add", (live(3), live(0))))


@pytest.mark.parametrize("op", ["cross_entropy", "linear", "sigmoid"])
def test_what_is_neither_linear_nor_a_residual(op: str) -> None:
    """Behind it nobody can say what an addition means."""
    assert not found(Call("add", (live(0), dead(2))), Call(op, (live(3),)))


def test_a_product_of_two_learned_values() -> None:
    """A constant added to one of them is a factor of the other one's gradient."""
    assert not found(Call("add", (live(0), dead(2))), Call("mul", (live(3), live(0))))


@pytest.mark.parametrize("cause", ["detach", "unknown", None])
def test_other_constants(cause: DetachCause | None) -> None:
    """Only gradients count."""
    calls = [Call("linear", (WEIGHT,)), Call("noise", (live(0),), cause=cause), Call("add", (live(0), dead(1)))]

    assert not list(lost_terms(calls, live(2), is_parameter))


def test_an_optimizers_past_updates_are_no_terms() -> None:
    """A weight that was written with a gradient begins anew: w.data -= lr * w.grad."""
    written = Read(2, leaf=0, is_live=True)
    scaled = Call("linear", (written,))

    assert not found(scaled, Call("add", (live(3), written)))


def test_a_loss_without_graph_has_no_terms() -> None:
    """It is refused, and told elsewhere."""
    calls = [*NETWORK, Call("add", (live(0), dead(2)))]

    assert not list(lost_terms(calls, dead(3), is_parameter))
    assert not list(lost_terms(calls, Read(is_live=True), is_parameter))


def test_each_term_is_found_once() -> None:
    """However many ways lead to it, and beside what cannot be looked into."""
    total, unknown = Call("add", (live(0), dead(2))), Call("cross_entropy", (live(0),))
    unseen = Call("add", (live(0), dead(2), Read(is_live=True)))

    assert found(total, Call("add", (live(3), live(3)))) == [LostTerm(1, 3)]
    assert found(total, unknown, Call("add", (live(3), live(4)))) == [LostTerm(1, 3)]
    assert found(unseen) == [LostTerm(1, 3)]


def test_a_gradient_does_not_pass_a_leaf() -> None:
    """Neither what a leaf was made of is a term, nor the gradient that it was updated with."""
    total = Call("add", (live(0), dead(2)))
    updated = Call("square", (Read(2, leaf=0, is_live=True),))

    assert not found(total, Call("add", (Read(3, leaf=7, is_live=True), live(0))))
    assert not found(updated, Call("add", (live(0), dead(3))))


@pytest.mark.parametrize(("taken_of", "is_found"), [(0, False), (1, True)])
def test_an_update_of_a_tensor_that_is_no_leaf(taken_of: int, *, is_found: bool) -> None:
    """As of activations that move along their own gradient."""
    calls = [
        Call("linear", (WEIGHT, DATA)),
        Call("tanh", (WEIGHT,)),
        Call("grad", (live(0), live(1)), cause="gradient", wrt=(live(taken_of),)),
        Call("sub", (live(0), dead(2))),
    ]

    assert list(lost_terms(calls, live(3), is_parameter)) == [LostTerm(2, 3)] * is_found


@pytest.mark.parametrize(("loss", "is_found"), [("mean", True), ("pow", False)])
def test_a_gradient_that_was_read_from_grad(loss: str, *, is_found: bool) -> None:
    """What it depends on is not known: as a term of a sum it is reported, in a residual not."""
    calls = [
        Call("linear", (WEIGHT, DATA)),
        Call("torch.Tensor.grad.__get__", cause="gradient"),
        Call("add", (live(0), dead(1))),
        Call(loss, (live(2),)),
    ]

    assert list(lost_terms(calls, live(3), is_parameter)) == [LostTerm(1, 2)] * is_found
