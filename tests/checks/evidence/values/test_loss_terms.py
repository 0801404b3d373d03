"""What is added up in a loss, on calls made by hand: which terms are constants by mistake, and which by intent."""

import pytest

from gradinspect.checks.evidence.values import loss_terms
from gradinspect.checks.evidence.values.loss_terms import (
    Term,
    constant_terms,
    divergence_inputs,
    lost_terms,
    sampled_inputs,
)
from gradinspect.checks.facts.value_flow import Call, DetachCause, Read
from gradinspect.recording.transparency.own_errors import OwnErrors

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


def found(*calls: Call) -> list[Term]:
    """Look at the loss that the last of these calls made, after NETWORK."""
    every = [*NETWORK, *calls]
    return list(lost_terms(every, live(len(every) - 1), is_parameter))


@pytest.mark.parametrize("op", ["torch.Tensor.add", "torch.Tensor.sub", "torch.Tensor.__radd__", "torch.stack"])
def test_a_term_that_is_added(op: str) -> None:
    """Under whatever is linear: a mean, a factor, a sign."""
    total = Call(op, (live(0), dead(2)))

    assert found(total, Call("mul", (live(3),)), Call("mean", (live(4),))) == [Term(made=1, used=3)]


def test_a_residual_with_the_network_itself() -> None:
    """Squared u' + u: the first is a constant there, the second is not."""
    residual = Call("add", (dead(1), live(0)))

    assert found(residual, Call("pow", (live(3),)), Call("mean", (live(4),))) == [Term(1, 3)]


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

    assert list(lost_terms(calls, live(3), is_parameter)) == [Term(made=1, used=3)]


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

    assert found(total, Call("add", (live(3), live(3)))) == [Term(1, 3)]
    assert found(total, unknown, Call("add", (live(3), live(4)))) == [Term(1, 3)]
    assert found(unseen) == [Term(1, 3)]


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

    assert list(lost_terms(calls, live(3), is_parameter)) == [Term(2, 3)] * is_found


@pytest.mark.parametrize(("loss", "is_found"), [("mean", True), ("pow", False)])
def test_a_gradient_that_was_read_from_grad(loss: str, *, is_found: bool) -> None:
    """What it depends on is not known: as a term of a sum it is reported, in a residual not."""
    calls = [
        Call("linear", (WEIGHT, DATA)),
        Call("torch.Tensor.grad.__get__", cause="gradient"),
        Call("add", (live(0), dead(1))),
        Call(loss, (live(2),)),
    ]

    assert list(lost_terms(calls, live(3), is_parameter)) == [Term(1, 2)] * is_found


def tensor(name: str, *reads: Read, cause: DetachCause | None = None, is_off: bool = False) -> Call:
    """Make a call of a method."""
    return Call(op=f"torch.Tensor.{name}", reads=reads, cause=cause, is_off=is_off)


def terms(cut: Call, *between: Call, total: str = "add") -> list[Term]:
    """Find the constant terms of a loss: call 1 detached something of call 0, which is added at the end."""
    calls = [tensor("exp", WEIGHT), cut, *between]
    calls += [tensor("sum", WEIGHT), tensor(total, live(len(calls)), Read(call=len(calls) - 1))]
    calls += [tensor("mul", live(len(calls) - 1))]
    return list(constant_terms(calls, live(len(calls) - 1)))


@pytest.mark.parametrize(
    ("cut", "is_found"),
    [
        (tensor("data", live(0), cause="data"), True),
        (tensor("tensor", live(0), cause="copy"), True),
        (tensor("argmax", live(0), cause="integer"), True),
        (tensor("data", live(0), cause="data", is_off=True), False),  # on purpose
        (tensor("detach", live(0), cause="detach"), False),
        (tensor("detach", WEIGHT, cause="detach"), True),  # of a parameter, as weight decay is
        (tensor("exp", live(0), cause="grad_off"), False),
        (tensor("exp", Read(call=0)), False),  # nothing was detached there
    ],
)
def test_a_term_counts_if_it_lost_its_graph_by_mistake(cut: Call, is_found: bool) -> None:
    """NOTE [Constant terms on purpose]; the loss may be weighed after the sum."""
    assert terms(cut) == [Term(1, 3)] * is_found


def test_a_weight_shows_that_a_detached_term_is_meant_to_train() -> None:
    """One number, not another tensor, and no weight of something else."""
    detached = tensor("detach", live(0), cause="detach")

    assert terms(detached, tensor("mul", Read(call=1))) == [Term(1, 4)]
    assert terms(detached, tensor("mul", Read(call=1), Read(call=0))) == []
    assert terms(detached, tensor("div", Read(call=1))) == []
    assert terms(detached, tensor("square", Read(call=1)), tensor("__rmul__", Read(call=2))) == [Term(1, 5)]


def test_only_what_is_added_is_a_term() -> None:
    """A factor without a gradient is none; what is subtracted is."""
    data = tensor("data", live(0), cause="data")

    assert terms(data, total="sub") == [Term(1, 3)]
    assert terms(data, total="mul") == []


def test_a_term_that_has_its_graph_is_none() -> None:
    """Although something of it was detached."""
    calls = [tensor("data", WEIGHT, cause="data"), tensor("mul", WEIGHT, Read(call=0)), tensor("add", live(1), live(1))]

    assert not list(constant_terms(calls, live(2)))
    assert not list(constant_terms([tensor("add", WEIGHT, Read())], live(0)))


def test_of_several_cuts_the_first_is_named_if_all_are_mistakes() -> None:
    """One on purpose may be the reason for the others."""
    again = tensor("tensor", live(0), cause="copy")
    meant = tensor("detach", live(0), cause="detach")
    both = tensor("max", Read(call=1), Read(call=2))

    assert terms(tensor("data", live(0), cause="data"), again, both) == [Term(1, 5)]
    assert terms(tensor("data", live(0), cause="data"), meant, both) == []


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.Tensor.softmax", [Term(0, 2)]),
        ("torch.sigmoid", [Term(0, 2)]),
        ("torch.nn.functional.log_softmax", []),
        ("torch.nn.functional.linear", [Term(0, 2)]),
        ("torch.log", []),
    ],
)
def test_the_first_argument_is_looked_at_past_views(made: str, expected: list[Term]) -> None:
    """Probabilities are wrong there, and so is the output of a layer; of anything else nothing is said."""
    calls = [
        Call(op=made, reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.Tensor.view", reads=(live(0),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(1), Read())),
        Call(op="torch.Tensor.mul", reads=(live(2),)),
    ]

    assert list(divergence_inputs(calls, live(3))) == expected


def test_the_second_argument_may_be_made_of_probabilities() -> None:
    """It has to be."""
    calls = [
        Call(op="torch.nn.functional.log_softmax", reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.softmax", reads=(Read(leaf=1, is_live=True),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(0), live(1))),
    ]

    assert not list(divergence_inputs(calls, live(2)))


def test_what_is_not_added_to_the_loss_is_not_looked_at() -> None:
    """Nothing is known of another function's use of it."""
    calls = [
        Call(op="torch.softmax", reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(0), Read())),
        Call(op="torch.exp", reads=(live(1),)),
    ]

    assert not list(divergence_inputs(calls, live(2)))


def test_only_kl_div_is_looked_at() -> None:
    """If it read something that a call made; a view of nothing ends the search."""
    softmax, view = Call(op="torch.softmax"), Call(op="torch.Tensor.view")
    others = [
        [softmax, Call(op="torch.mul", reads=(live(0), Read()))],
        [softmax, Call(op="torch.nn.functional.kl_div")],
        [softmax, Call(op="torch.nn.functional.kl_div", reads=(Read(), live(0)))],
        [view, Call(op="torch.nn.functional.kl_div", reads=(live(0), Read()))],
    ]

    assert [list(divergence_inputs(calls, live(1))) for calls in others] == [[]] * 4


def test_samples_beyond_a_number_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that layers are given, where none of the first is a finding."""
    monkeypatch.setattr(loss_terms, "MAX_DRAWS", 0)
    errors = OwnErrors()
    sample = Call("sample", (live(0),), cause="sample")
    decoded = Call("torch.nn.functional.linear", (dead(3), WEIGHT))
    calls = [*NETWORK, sample, decoded, Call("add", (live(0), live(4)))]

    assert not list(sampled_inputs(calls, live(5), errors.pass_over))
    assert list(errors.notes()) == ["Not checked: 1 sample that a layer is given, after the first 0 of a loss."]
