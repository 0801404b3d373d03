"""Terms that a graph made by hand adds more than once."""

from factories import graph, op, tensor_info
from msgspec.structs import replace

from gradinspect.checks.evidence.objectives.repeated_terms import repeated_terms
from gradinspect.graph import Node, SavedValue


def added(*next_edges: int | tuple[int, int], alpha: float = 1) -> Node:
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

    assert [(one.count, one.used) for one in repeated_terms(twice)] == [(2, (None,))]
    assert not [*repeated_terms(weighed), *repeated_terms(matrices)]


def test_numbers_are_added_by_stacking_too() -> None:
    """A stack of numbers is summed; one of vectors is something else."""
    term, other = op("MeanBackward0", None, shape=()), op("SumBackward0", None, shape=())
    direct = graph(op("StackBackward0", 1, 1, 2, shape=(3,)), term, other)
    vectors = graph(op("StackBackward0", 1, 1, shape=(2, 4)), op("MeanBackward0", None, shape=(4,)))
    weighed = graph(added(1, 2, alpha=2), added(2, 2), term)

    assert [len(list(repeated_terms(one))) for one in (direct, vectors, weighed, graph(roots=()))] == [1, 0, 0, 0]


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


def test_outputs_of_one_node_are_terms_of_their_own() -> None:
    """Weights from unbind() are added once each; the same one twice is named."""
    weights = replace(op("UnbindBackward0", None, shape=()), forward_outputs=(tensor_info(), tensor_info()))
    once = graph(added((2, 0), 1), added((2, 1), 3), weights, op("MeanBackward0", None, shape=()))
    twice = graph(added((2, 1), 1), added((2, 1), 3), weights, op("MeanBackward0", None, shape=()))

    assert [*repeated_terms(once)] == []
    assert [one.count for one in repeated_terms(twice)] == [2]


def test_what_the_whole_sum_is_multiplied_with_does_not_matter() -> None:
    """Half of a sum that has a term twice still has it twice; a product of two is no sum."""
    term, other = op("MeanBackward0", None, shape=()), op("SumBackward0", None, shape=())
    half = graph(op("DivBackward0", 1, None, shape=()), added(2, 3), added(3, 4), term, other)
    stacked = graph(op("SumBackward0", 1, shape=()), op("StackBackward0", 2, 2, 3, shape=(3,)), term, other)
    product = graph(op("MulBackward0", 1, 1, shape=()), term)
    whole = graph(op("SumBackward0", 1, shape=()), op("MmBackward0", None, None, shape=(2, 2)))

    assert [len(list(repeated_terms(one))) for one in (half, stacked, product, whole)] == [1, 1, 0, 0]
