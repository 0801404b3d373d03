"""What goes into kl_div, judged on calls made by hand."""

import pytest

from gradinspect.checks.facts.value_flow import Call, Read
from gradinspect.checks.rules.losses.divergences import WrongInput, wrong_input_finding, wrong_inputs
from gradinspect.graph import Frame


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.Tensor.softmax", [WrongInput(0, 2)]),
        ("torch.sigmoid", [WrongInput(0, 2)]),
        ("torch.nn.functional.log_softmax", []),
        ("torch.nn.functional.linear", [WrongInput(0, 2)]),
        ("torch.log", []),
    ],
)
def test_the_first_argument_is_looked_at_past_views(made: str, expected: list[WrongInput]) -> None:
    """Probabilities are wrong there, and so is the output of a layer; of anything else nothing is said."""
    calls = [
        Call(op=made, reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.Tensor.view", reads=(live(0),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(1), Read())),
        Call(op="torch.Tensor.mul", reads=(live(2),)),
    ]

    assert list(wrong_inputs(calls, live(3))) == expected


def test_the_second_argument_may_be_made_of_probabilities() -> None:
    """It has to be."""
    calls = [
        Call(op="torch.nn.functional.log_softmax", reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.softmax", reads=(Read(leaf=1, is_live=True),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(0), live(1))),
    ]

    assert not list(wrong_inputs(calls, live(2)))


def test_what_is_not_added_to_the_loss_is_not_looked_at() -> None:
    """Nothing is known of another function's use of it."""
    calls = [
        Call(op="torch.softmax", reads=(Read(leaf=0, is_live=True),)),
        Call(op="torch.nn.functional.kl_div", reads=(live(0), Read())),
        Call(op="torch.exp", reads=(live(1),)),
    ]

    assert not list(wrong_inputs(calls, live(2)))


LINES = Frame(file="train.py", line=3), Frame(file="train.py", line=5)


@pytest.mark.parametrize(
    ("made", "text", "remedy"),
    [
        ("softmax", "the output of softmax as its first argument: probabilities, not their logarithms.",
         "Replace softmax at train.py:3 by log_softmax. The second argument stays as it is."),
        ("sigmoid", "the output of sigmoid as its first argument: probabilities, not their logarithms.",
         "Replace sigmoid at train.py:3 by logsigmoid. The second argument stays as it is."),
        ("linear", "the output of linear as its first argument, which is not made of log-probabilities: the loss falls",
         "Apply log_softmax to the first argument at train.py:5."),
    ],
)  # fmt: skip
def test_what_went_into_it_is_named(made: str, text: str, remedy: str) -> None:
    """With both lines, or one if they are the same."""
    calls = [Call(op=f"torch.{made}"), Call(op="torch.nn.functional.kl_div", reads=(live(0), Read()))]
    apart, together = (
        wrong_input_finding(calls, WrongInput(0, 1), lines, None) for lines in (LINES, (LINES[1], LINES[1]))
    )

    assert text in apart.text
    assert apart.remedy == remedy
    assert [(place.role, place.line) for place in apart.places] == [("applied", 3), ("loss", 5)]
    assert [(place.role, place.line) for place in together.places] == [("loss", 5)]


def test_only_kl_div_is_looked_at() -> None:
    """If it read something that a call made; a view of nothing ends the search."""
    softmax, view = Call(op="torch.softmax"), Call(op="torch.Tensor.view")
    others = [
        [softmax, Call(op="torch.mul", reads=(live(0), Read()))],
        [softmax, Call(op="torch.nn.functional.kl_div")],
        [softmax, Call(op="torch.nn.functional.kl_div", reads=(Read(), live(0)))],
        [view, Call(op="torch.nn.functional.kl_div", reads=(live(0), Read()))],
    ]

    assert [list(wrong_inputs(calls, live(1))) for calls in others] == [[]] * 4
