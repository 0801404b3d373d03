"""What is said of losses that may be meant as they are, on calls and graphs made by hand."""

import pytest
from factories import graph, op
from msgspec.structs import replace

from gradinspect.checks.evidence.values.perhaps_meant import Bootstrap, bootstraps, repeated_terms
from gradinspect.checks.facts.value_flow import Call, Read
from gradinspect.graph import Node, SavedValue

WEIGHT = Read(leaf=0, is_live=True)


def live(call: int) -> Read:
    """Read what a call made, which requires grad."""
    return Read(call=call, is_live=True)


def q_learning(*, target: Read, leaf: Read = WEIGHT, reward: Read | None = None) -> list[Call]:
    """Make the calls of a step of Q-learning."""
    return [
        Call(op="torch.nn.functional.linear", reads=(Read(), WEIGHT)),
        Call(op="torch.nn.functional.linear", reads=(Read(), leaf)),
        Call(op="torch.Tensor.mul", reads=(target,)),
        Call(op="torch.Tensor.add", reads=(reward or Read(), Read(call=2, is_live=target.is_live))),
        Call(op="torch.nn.functional.mse_loss", reads=(live(0), Read(call=3, is_live=target.is_live))),
    ]


def test_a_target_with_a_gradient_to_the_same_parameters_is_named() -> None:
    """Where it was computed, and the loss."""
    assert list(bootstraps(q_learning(target=live(1)), live(4))) == [Bootstrap(3, 4)]


@pytest.mark.parametrize(
    "calls",
    [
        q_learning(target=Read(call=1)),
        q_learning(target=live(1), leaf=Read(leaf=7, is_live=True)),
        q_learning(target=live(1), reward=live(0)),
    ],
    ids=["detached", "of another network", "of two predictions"],
)
def test_other_targets_are_not(calls: list[Call]) -> None:
    """Nothing is said of them."""
    assert not list(bootstraps(calls, live(4)))


def added(*next_edges: int, alpha: float = 1) -> Node:
    """Make the sum of two numbers."""
    return op(
        "AddBackward0", *next_edges, shape=(), saved=(SavedValue(name="_saved_alpha", kind="float", value=alpha),)
    )


def test_a_term_that_is_added_twice_is_named() -> None:
    """Once, with how often; what is weighed or added once is not."""
    term, other = op("MeanBackward0", None, shape=()), op("SumBackward0", None, shape=())
    twice = graph(added(1, 2), added(2, 3), term, other)
    weighed = graph(added(1, 3), op("MulBackward0", 3, None, shape=()), other, term)
    matrices = graph(op("AddBackward0", 1, 1), op("MmBackward0", None, None))

    assert [text.partition(" computes ")[2] for text in repeated_terms(twice)] == [
        "is added to the loss 2 times, at an unknown line."
    ]
    assert not [*repeated_terms(weighed), *repeated_terms(matrices)]


def test_numbers_are_added_by_stacking_too() -> None:
    """A stack of numbers is summed; one of vectors is something else."""
    term, other = op("MeanBackward0", None, shape=()), op("SumBackward0", None, shape=())
    direct = graph(op("StackBackward0", 1, 1, 2, shape=(3,)), term, other)
    vectors = graph(op("StackBackward0", 1, 1, shape=(2, 4)), op("MeanBackward0", None, shape=(4,)))
    weighed = graph(added(1, 2, alpha=2), added(2, 2), term)

    assert [len(list(repeated_terms(one))) for one in (direct, vectors, weighed, graph(roots=()))] == [1, 0, 0, 0]


def test_a_prediction_without_its_graph_has_no_target() -> None:
    """Nor has a regression on nothing; what is found under a mean is found beside other losses."""
    calls = q_learning(target=live(1))
    swapped = [*calls[:4], Call(op="torch.nn.functional.mse_loss", reads=(Read(call=0), live(3)))]
    mean = [
        *calls, Call(op="torch.nn.functional.mse_loss", reads=(live(0),)), Call(op="torch.exp", reads=(live(0),)),
        Call(op="torch.stack", reads=(live(4), live(5), live(6))), Call(op="torch.Tensor.mean", reads=(live(7),)),
    ]  # fmt: skip

    assert not list(bootstraps(swapped, live(4)))
    assert list(bootstraps(mean, live(8))) == [Bootstrap(3, 4)]


def test_outputs_that_are_not_known_are_no_numbers() -> None:
    """Neither of a stack, nor of what it stacks."""
    term, stack = op("MeanBackward0", None, shape=()), op("StackBackward0", 1, 1, shape=(2,))
    unknown = [
        graph(replace(stack, forward_outputs=(None,)), term, roots=()),
        graph(stack, replace(term, forward_outputs=(None,))),
        graph(stack, replace(term, forward_outputs=())),
    ]
    first = replace(unknown[0], roots=graph(stack, term).roots)

    assert [list(repeated_terms(one)) for one in (first, *unknown[1:])] == [[], [], []]
    assert len(list(repeated_terms(graph(stack, term)))) == 1


def test_each_term_that_is_added_twice_is_named() -> None:
    """Also after another one."""
    term, other = op("MeanBackward0", None, shape=()), op("SumBackward0", None, shape=())

    assert len(list(repeated_terms(graph(added(1, 2), added(3, 4), added(3, 4), term, other)))) == 2
