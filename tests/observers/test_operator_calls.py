"""Listeners that are called with operators."""

import torch

from gradinspect.observers.operator_calls import OperatorCalls


def test_listeners_hear_each_operator_with_what_it_was_given_and_has_returned() -> None:
    """Arguments by place and by name, and the result."""
    heard: list[tuple[str, float, dict[str, object], float]] = []
    errors: list[Exception] = []
    x = torch.tensor([1.0, 2.0])
    with OperatorCalls(
        lambda func, args, kwargs, result: heard.append((str(func), args[0][0].item(), dict(kwargs), result[0].item())),
        note=errors.append,
    ):
        y = torch.add(x, 1, alpha=3)
    assert heard[0] == ("aten.add.Tensor", 1.0, {"alpha": 3}, 4.0)
    assert y.tolist() == [4.0, 5.0]
    assert not errors


def test_an_error_of_a_listener_is_kept_the_others_hear_and_the_program_goes_on() -> None:
    """One policy for every listener."""
    errors: list[Exception] = []
    heard: list[str] = []

    def fail(*_heard: object) -> None:
        raise ZeroDivisionError("ours")

    with OperatorCalls(fail, lambda func, *_rest: heard.append(str(func)), note=errors.append):
        y = torch.ones(2).exp()
    assert heard[-1] == "aten.exp.default"
    assert torch.equal(y, torch.ones(2).exp())
    assert [type(error) for error in errors] == [ZeroDivisionError] * len(heard)
