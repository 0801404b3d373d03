"""What became of a value, told on hand-made calls."""

import pytest

from gradinspect.checks.facts.value_flow import (
    OUTSIDE,
    Call,
    DetachCause,
    FlowOutcome,
    Read,
    ancestors,
    calls_behind,
    descendants,
    first_behind,
    flow_outcomes,
    short_name,
)

LEAF = Read(leaf=0, is_live=True)


def of(call: int, *, is_live: bool = True) -> Read:
    """Read what a call made."""
    return Read(call, is_live=is_live)


def outcome(calls: list[Call], root: Read | None = None) -> FlowOutcome:
    """Return the outcome of leaf 0 before the last call's result, or another root."""
    (found,) = flow_outcomes(calls, [LEAF], of(len(calls) - 1) if root is None else root)
    return found


def test_the_cut_is_the_call_whose_result_no_longer_required_grad() -> None:
    """The path goes from the leaf to it, and whoever read its result is named."""
    calls = [
        Call("torch.nn.functional.linear", (Read(), LEAF)),
        Call("torch.Tensor.relu", (of(0),)),
        Call("torch.Tensor.detach", (of(1),), cause="detach"),
        Call("torch.nn.functional.linear", (of(2, is_live=False), Read(leaf=1, is_live=True))),
        Call("torch.Tensor.mean", (of(3),)),
    ]

    assert outcome(calls) == FlowOutcome("cut", first=0, cut=2, used=3, cause="detach", path=(0, 1, 2))


def test_a_cut_off_the_way_to_the_loss_does_not_count() -> None:
    """What is detached for a log goes nowhere; the value itself is just not used."""
    calls = [
        Call("torch.exp", (LEAF,)),
        Call("torch.Tensor.detach", (of(0),), cause="detach"),
        Call("torch.rand"),
    ]

    assert outcome(calls) == FlowOutcome("unused", first=0, cut=0)


def test_a_loss_without_graph_is_cut_at_its_own_call() -> None:
    """Nobody reads it after the cut."""
    calls = [Call("torch.Tensor.argmax", (LEAF,), cause="integer")]

    assert outcome(calls, of(0, is_live=False)) == FlowOutcome("cut", first=0, cut=0, cause="integer", path=(0,))


@pytest.mark.parametrize(("is_write", "cause"), [(True, "assigned"), (False, "rewrapped")])
def test_a_leaf_that_a_call_made_ends_the_way(is_write: bool, cause: str) -> None:
    """Its values came from somewhere, its history begins anew."""
    calls = [
        Call("torch.Tensor.mul", (LEAF,), is_write=is_write),
        Call("torch.sum", (Read(0, leaf=1, is_live=True),)),
    ]

    expected = FlowOutcome("cut", first=0, cut=0, used=1, cause=cause, path=(0,), into=1)  # type: ignore[arg-type]
    assert outcome(calls) == expected


def test_a_cut_beside_the_value_with_its_graph_does_not_count() -> None:
    """An action indexes its own log-probabilities, which somebody detaches afterwards, or takes to Python."""
    sampled = [
        Call("torch.nn.functional.linear", (LEAF,)),
        Call("torch.multinomial", (of(0),), cause="integer"),
        Call("torch.Tensor.reshape", (of(1, is_live=False),)),
        Call("torch.gather", (of(0), of(2, is_live=False))),
    ]
    detached = [
        *sampled,
        Call("torch.Tensor.detach", (of(3),), cause="detach"),
        Call("torch.mul", (of(4, is_live=False), Read(leaf=1, is_live=True))),
    ]
    taken = [
        *sampled,
        Call("torch.Tensor.item", (of(3),), cause="python"),
        Call("torch.tensor"),
        Call("torch.mul", (of(5, is_live=False), Read(leaf=1, is_live=True))),
    ]

    assert outcome(detached) == FlowOutcome("cut", 0, cut=4, used=5, cause="detach", path=(0, 3, 4))
    assert outcome(taken) == FlowOutcome("cut", 0, cut=4, used=5, cause="python", path=(4,), exits=(4,))
    assert outcome(sampled, of(2, is_live=False)).cause == "integer"


def test_a_sample_counts_less_even_where_it_also_goes_its_own_way() -> None:
    """The action also looks up its reward, which is a part of the loss without the policy's graph."""
    calls = [
        Call("torch.nn.functional.linear", (LEAF,)),
        Call("torch.multinomial", (of(0),), cause="integer"),
        Call("torch.gather", (of(0), of(1, is_live=False))),
        Call("torch.Tensor.detach", (of(2),), cause="detach"),
        Call("torch.Tensor.__getitem__", (Read(), of(1, is_live=False))),
        Call("torch.mul", (of(3, is_live=False), of(4, is_live=False))),
        Call("torch.add", (of(5, is_live=False), Read(leaf=1, is_live=True))),
    ]

    assert outcome(calls).cause == "detach"


def test_the_leaf_that_a_value_became() -> None:
    """By requires_grad_() on what no longer had a graph; here it is the loss."""
    calls = [Call("torch.gt", (LEAF,), cause="integer"), Call("torch.mean", (of(0, is_live=False),))]

    assert outcome(calls, Read(1, leaf=7, is_live=True)).into == 7


def test_used_is_the_call_outside_the_scope_without_gradients() -> None:
    """Not the next layer inside it."""
    calls = [
        Call("linear", (LEAF,), cause="grad_off", is_off=True),
        Call("relu", (of(0, is_live=False),), is_off=True),
        Call("linear", (of(1, is_live=False), Read(leaf=1, is_live=True))),
    ]

    assert outcome(calls).used == 2


def test_a_number_from_python_is_a_cut_only_where_one_comes_back() -> None:
    """Logging item() is no cut; torch.tensor() afterwards, on the way to the loss, is."""
    calls = [Call("torch.mean", (LEAF,)), Call("torch.Tensor.item", (of(0),), cause="python")]
    constant = [*calls, Call("torch.zeros"), Call("torch.mul", (of(2, is_live=False), Read(leaf=1, is_live=True)))]
    back = [*calls, Call("torch.tensor"), Call("torch.mul", (of(2, is_live=False), Read(leaf=1, is_live=True)))]

    assert outcome(constant) == FlowOutcome("unused", first=0, cut=1, cause="python")
    assert outcome(back) == FlowOutcome("cut", first=0, cut=1, used=2, cause="python", path=(1,), exits=(1,))


def test_an_evaluation_is_no_end_of_what_a_loss_leaves_out() -> None:
    """What was taken to Python from values without a graph says nothing of why a parameter gets no gradient."""
    calls = [
        Call("torch.mean", (LEAF,)),
        Call("torch.nn.functional.linear", (LEAF,), cause="grad_off"),
        Call("torch.Tensor.item", (of(1, is_live=False),), cause="python"),
        Call("torch.mul", (Read(leaf=1, is_live=True),)),
    ]

    assert outcome(calls) == FlowOutcome("unused", first=0, cut=0)


def test_what_came_back_before_it_left_is_another_number() -> None:
    """The order of the calls counts."""
    calls = [
        Call("torch.tensor"),
        Call("torch.mul", (of(0, is_live=False), Read(leaf=1, is_live=True))),
        Call("torch.Tensor.item", (LEAF,), cause="python"),
    ]

    assert outcome(calls, of(1)).kind == "unused"


def test_reading_without_gradients_is_not_using() -> None:
    """A moving average reads every parameter."""
    calls = [Call("torch.Tensor.lerp_", (LEAF,), cause="grad_off", is_off=True), Call("torch.rand")]

    assert outcome(calls) == FlowOutcome("unread")
    assert outcome([]) == FlowOutcome("unread")


def test_a_start_may_be_the_result_of_a_call() -> None:
    """Then the making of it is no use of it."""
    calls = [
        Call("torch.Tensor.getitem", (LEAF,)),
        Call("torch.exp", (LEAF,)),
        Call("torch.Tensor.mul", (of(0),)),
        Call("torch.sum", (of(1),)),
    ]
    (used,) = flow_outcomes(calls, [of(0)], of(3))
    (unread,) = flow_outcomes(calls[:2], [of(0)], of(1))

    assert used == FlowOutcome("unused", first=2, cut=2)
    assert unread == FlowOutcome("unread")


def test_many_starts_are_told_apart() -> None:
    """Each has its own bit, however many there are."""
    calls = [Call("mul", (Read(leaf=leaf, is_live=True),)) for leaf in range(100)]
    calls += [Call("detach", (of(leaf),), cause="detach") for leaf in range(100)]
    calls.append(Call("stack", tuple(of(100 + leaf, is_live=False) for leaf in range(0, 100, 2))))
    found = flow_outcomes(calls, [Read(leaf=leaf, is_live=True) for leaf in range(100)], of(200))

    assert [one.kind for one in found] == ["cut", "unused"] * 50
    assert [one.cut for one in found[::2]] == list(range(100, 200, 2))


def test_ancestors() -> None:
    """A leaf's own past can be left out; a tensor from outside has none."""
    calls = [Call("randn"), Call("mul", (Read(0, leaf=3, is_live=True),)), Call("add", (of(1), of(1)))]

    assert ancestors(calls, 2) == {0, 1, 2}
    assert ancestors(calls, 2, stops_at_leaves=True) == {1, 2}
    assert ancestors(calls, OUTSIDE) == set()


@pytest.mark.parametrize(
    ("op", "name"),
    [("torch.Tensor.data.__get__", "data"), ("torch.Tensor.requires_grad.__set__", "requires_grad"), ("grad", "grad")],
)
def test_short_names(op: str, name: str) -> None:
    """An attribute is called as the program writes it."""
    assert short_name(op) == name


def test_a_number_counts_before_a_cut_of_which_all_meets_its_graph_again() -> None:
    """But not before one whose value goes on alone; each start has cuts of its own."""
    calls = [
        Call("torch.nn.functional.linear", (LEAF,)),
        Call("torch.Tensor.argmax", (of(0),), cause="integer"),
        Call("torch.gather", (of(0), of(1, is_live=False))),
        Call("torch.Tensor.item", (of(0),), cause="python"),
        Call("torch.tensor"),
        Call("torch.add", (of(2), of(4, is_live=False))),
    ]
    detached = [*calls, Call("torch.mul", (of(5, is_live=False), Read(leaf=1, is_live=True)))]
    starts = [Read(leaf=1, is_live=True), LEAF, Read(leaf=2, is_live=True)]

    assert outcome(calls[:3]).cause == "integer"
    assert outcome(calls).cause == "python"
    assert outcome(detached).cut == 5
    assert [one.cut for one in flow_outcomes(detached, starts, of(6))] == [6, 5, None]


def test_of_several_cuts_the_first_is_named() -> None:
    """Whether or not all of them meet the graph again."""
    cuts = [Call("exp", (LEAF,)), *(Call("argmax", (of(0),), cause="integer") for _ in range(2))]
    again = of(1, is_live=False), of(2, is_live=False)

    assert outcome([*cuts, Call("stack", again), Call("mul", (of(3, is_live=False),))]).cut == 1
    assert outcome([*cuts, Call("gather", (of(0), *again)), Call("gather", (of(3), *reversed(again)))]).cut == 1


def test_a_loss_that_no_call_made_is_reached_by_nothing() -> None:
    """What was detached on the way to something else is no cut of it."""
    calls = [Call("torch.exp", (LEAF,)), Call("torch.Tensor.detach", (of(0),), cause="detach")]

    assert outcome(calls, Read()) == FlowOutcome("unused", first=0, cut=0)
    assert outcome(calls, Read(is_live=True)) == FlowOutcome("unused", first=0, cut=0)
    assert outcome([Call("torch.Tensor.item", (LEAF,), cause="python")], Read()) == FlowOutcome(
        "cut", first=0, cut=0, cause="python", path=(0,), exits=(0,)
    )


def test_a_scope_without_gradients_that_begins_after_the_cut_is_not_left() -> None:
    """What used the value is the call that read it first."""
    calls = [
        Call("torch.Tensor.detach", (LEAF,), cause="detach"),
        Call("torch.mul", (of(0, is_live=False),), is_off=True),
        Call("torch.mul", (of(1, is_live=False), Read(leaf=1, is_live=True))),
    ]

    assert outcome(calls).used == 1


def test_the_leaf_that_a_value_became_was_made_of_it() -> None:
    """After the cut, and not of another start's value, nor of one that came from elsewhere."""
    calls = [
        Call("torch.exp", (LEAF,)),
        Call("torch.rand"),
        Call("torch.exp", (Read(leaf=1, is_live=True),)),
        Call("torch.Tensor.detach", (of(0),), cause="detach"),
        Call("torch.ones"),
        Call("torch.Tensor.detach", (of(2),), cause="detach"),
        Call("torch.clone", (of(3, is_live=False),)),
    ]
    leaves = [Read(call, leaf=10 + call, is_live=True) for call in (1, 4, 5, 6)]
    calls.append(Call("torch.stack", (*leaves, of(3, is_live=False))))
    found = flow_outcomes(calls, [Read(leaf=1, is_live=True), LEAF], of(7))

    assert [(one.first, one.cut, one.into) for one in found] == [(2, 5, 15), (0, 3, 16)]
    assert outcome([*calls[:4], Call("torch.stack", (leaves[0], of(3, is_live=False)))]).into == -1


@pytest.mark.parametrize(
    ("cause", "op", "found"),
    [("integer", "gt", "rewrapped"), ("unknown", "gt", "unknown"), ("copy", "gt", "copy"), (None, "tensor", "copy")],
)
def test_how_a_leaf_lost_the_graph(cause: DetachCause | None, op: str, found: DetachCause) -> None:
    """By the call that made it, but integers become no leaf by themselves."""
    calls = [Call(op, (LEAF,), cause=cause), Call("mul", (Read(0, leaf=4, is_live=True),))]

    assert outcome(calls).cause == found


def test_the_first_use_of_each_start() -> None:
    """Each has its own."""
    starts = [Read(leaf=leaf, is_live=True) for leaf in range(3)]
    calls = [Call("detach", (start,), cause="detach") for start in starts]
    calls.append(Call("stack", tuple(of(call, is_live=False) for call in range(3))))

    assert [one.first for one in flow_outcomes(calls, starts, of(3))] == [0, 1, 2]


def test_descendants_and_what_a_gradient_walks_through() -> None:
    """Each call once; a gradient passes only operators that are named, and ends at leaves and at what has no graph."""
    calls = [
        Call("randn"),
        Call("mul", (of(0), LEAF)),
        Call("torch.Tensor.add_", (of(1), of(1), of(0, is_live=False))),
        Call("torch.Tensor.__add__", (of(0), of(2), of(2), Read(1, leaf=3, is_live=True))),
        Call("exp"),
    ]

    assert descendants(calls, 1) == {1, 2, 3}
    assert descendants(calls, 0) == {0, 1, 2, 3}
    assert descendants(calls, 4) == {4}
    assert list(calls_behind(calls, of(3), {"add"})) == [3, 2, 1, 0]
    assert list(calls_behind(calls, of(3), {"add", "mul"})) == [3, 2, 1, 0]
    assert list(calls_behind(calls, of(2), {"mul"})) == [2]
    assert list(calls_behind(calls, of(3, is_live=False), {"add"})) == []
    assert list(calls_behind(calls, Read(3, leaf=1, is_live=True), {"add"})) == []
    assert list(calls_behind(calls, Read(is_live=True), {"add"})) == []


def test_what_passes_on_its_first_argument_is_walked_past() -> None:
    """In place or not; up to another function, or to what came from outside."""
    calls = [Call("randn"), Call("view", (of(0),)), Call("mul_", (of(1), of(0))), Call("view", (Read(),))]

    assert first_behind(calls, 2, {"view", "mul"}) == 0
    assert first_behind(calls, 2, {"mul"}) == 1
    assert first_behind(calls, 2, {"view"}) == 2
    assert first_behind(calls, 3, {"view"}) == first_behind(calls, OUTSIDE, {"view"}) == OUTSIDE
    assert first_behind([Call("view")], 0, {"view"}) == 0
