"""What goes into kl_div, judged on calls made by hand."""

import pytest

from gradinspect.checks.rules.flow.value_flow import Call, Read
from gradinspect.checks.rules.losses.divergences import WrongInput, wrong_inputs


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
