"""Terms of a loss without a gradient, on calls made by hand."""

import pytest

from gradinspect.checks.facts.value_flow import Call, DetachCause, Read
from gradinspect.checks.rules.flow.constant_terms import ConstantTerm, constant_term_finding, constant_terms
from gradinspect.graph import Frame

WEIGHT = Read(leaf=0, is_live=True)


def tensor(name: str, *reads: Read, cause: DetachCause | None = None, is_off: bool = False) -> Call:
    """Make a call of a method."""
    return Call(op=f"torch.Tensor.{name}", reads=reads, cause=cause, is_off=is_off)


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


def terms(cut: Call, *between: Call, total: str = "add") -> list[ConstantTerm]:
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
    assert terms(cut) == [ConstantTerm(1, 3)] * is_found


def test_a_weight_shows_that_a_detached_term_is_meant_to_train() -> None:
    """One number, not another tensor, and no weight of something else."""
    detached = tensor("detach", live(0), cause="detach")

    assert terms(detached, tensor("mul", Read(call=1))) == [ConstantTerm(1, 4)]
    assert terms(detached, tensor("mul", Read(call=1), Read(call=0))) == []
    assert terms(detached, tensor("div", Read(call=1))) == []
    assert terms(detached, tensor("square", Read(call=1)), tensor("__rmul__", Read(call=2))) == [ConstantTerm(1, 5)]


def test_only_what_is_added_is_a_term() -> None:
    """A factor without a gradient is none; what is subtracted is."""
    data = tensor("data", live(0), cause="data")

    assert terms(data, total="sub") == [ConstantTerm(1, 3)]
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

    assert terms(tensor("data", live(0), cause="data"), again, both) == [ConstantTerm(1, 5)]
    assert terms(tensor("data", live(0), cause="data"), meant, both) == []


def test_the_words_name_both_lines() -> None:
    """Where it was detached, and where it is added."""
    cut, used, backward = (Frame(file="train.py", line=number) for number in (3, 5, 7))
    calls = [tensor("data", WEIGHT, cause="data")]
    found = constant_term_finding(calls, ConstantTerm(0, 1), (cut, used), backward)

    assert [(place.role, place.line) for place in found.places] == [("detached", 3), ("used", 5), ("backward", 7)]
    assert found.text.startswith(
        "What train.py:5 adds to the loss has no graph: .data returns the values without their"
    )
    assert found.text.endswith("Backward treats it as a constant, so it changes no gradient.")
    assert "train.py:3" in found.remedy
