"""A backward through a freed graph, on graphs made by hand."""

from factories import graph, leaf, op, saved
from msgspec.structs import replace

from gradinspect.checks.facts.backward_calls import BackwardStarts, EarlierCall
from gradinspect.checks.rules.graphs.second_backward import second_backward_findings
from gradinspect.graph import Frame, Graph, Node, Root

OLD = Frame(file="rnn.py", line=10, code="h = cell(x)")
NEW = Frame(file="rnn.py", line=11, code="loss = head(h)")
BACKWARD = Frame(file="rnn.py", line=12, code="loss.backward()")
FREED = saved("_saved_result", 4, storage=0, status="freed")


def first_call(clock: int = 4, frame: Frame = BACKWARD) -> EarlierCall:
    """One that went through nodes 0 to 3."""
    return EarlierCall(name="backward #1", frame=frame, root="loss_a", nodes=frozenset(range(4)), clock=clock)


def joined(new_number: int) -> Graph:
    """A new node that reads an old one, whose saved result is gone."""
    nodes: list[Node] = [
        op("MulBackward0", 1, sequence_nr=new_number, frame=1),
        op("TanhBackward0", 2, sequence_nr=2, frame=0, saved=(FREED,)),
        leaf("w", 4),
    ]
    return graph(*nodes, frames=(OLD, NEW))


def test_the_edge_where_the_new_graph_joins_the_old_one() -> None:
    """Old line, new line, who freed it; and the detach() that would fix it, by the name of the variable."""
    (found,) = second_backward_findings(BackwardStarts(joined(7), BACKWARD, [first_call()]))

    assert found.code == "GI401"
    assert [(place.role, place.line) for place in found.places] == [
        ("old", 10), ("new", 11), ("freed", 12), ("backward", 12),
    ]  # fmt: skip
    assert found.text == (
        "h (rnn.py:10) is part of two graphs, and backward #1 (rnn.py:12) has freed that, so this backward will fail. "
        "(1 of 2 nodes, up to where MulBackward0 reads what TanhBackward0 made; TanhBackward0 has lost its saved "
        "tensors.)"
    )
    assert found.remedy.startswith("Compute rnn.py:10 again in each iteration, before rnn.py:11; if no gradient")


def test_two_losses_that_are_known_before_are_added() -> None:
    """No detach() would be right: one backward is enough for both."""
    recorded = replace(joined(3), roots=(Root(node=0, name="loss_b"),))
    call = EarlierCall(name="backward #1", frame=BACKWARD, root="loss_a", nodes=frozenset({2}), clock=4)
    (found,) = second_backward_findings(BackwardStarts(recorded, Frame(file="rnn.py", line=13), [call]))

    assert "call (loss_a + loss_b).backward() once" in found.remedy


def test_losses_that_a_loop_weights_are_added_in_it() -> None:
    """The first call went through what both read, and not through the second loss, which was known before, too."""
    nodes: list[Node] = [
        op("MulBackward0", 1, sequence_nr=7, frame=2),
        op("MseLossBackward0", 2, sequence_nr=3, frame=1),
        op("TanhBackward0", 3, sequence_nr=2, frame=0, saved=(FREED,)),
        leaf("w", 4),
    ]
    recorded = graph(*nodes, frames=(OLD, NEW, BACKWARD))
    call = replace(first_call(), nodes=frozenset({0, 1, 2}))
    (found,) = second_backward_findings(BackwardStarts(recorded, BACKWARD, [call]))

    assert [(place.role, place.line) for place in found.places] == [
        ("old", 10),
        ("new", 11),
        ("freed", 12),
        ("backward", 12),
    ]
    assert found.text.startswith("h (rnn.py:10) is part of two graphs")
    assert found.remedy == (
        "All losses are known before rnn.py:12, and share a part: add them up in the loop, and call backward() once on "
        "the sum, after it."
    )


def test_a_graph_that_is_old_as_a_whole_is_computed_again() -> None:
    """Inside the loop, where it is the same line that calls backward."""
    (found,) = second_backward_findings(BackwardStarts(joined(3), BACKWARD, [first_call()]))

    assert [place.role for place in found.places] == ["made", "freed", "backward"]
    assert found.text.startswith("backward #1 (rnn.py:12) freed the whole graph, so this backward will fail.")
    assert found.remedy.endswith("inside the loop: a graph can be used for one backward.")


def test_a_call_before_those_that_were_watched() -> None:
    """That there was one is all that is known."""
    (found,) = second_backward_findings(BackwardStarts(joined(7), BACKWARD))

    assert "has been freed, by a backward before the observed ones." in found.text


def test_a_graph_that_has_everything_is_fine() -> None:
    """Nothing is freed, so nothing is found, whoever went through it."""
    kept = graph(op("TanhBackward0", 1, sequence_nr=2, saved=(saved("_saved_result", 4, storage=0),)), leaf("w", 4))

    assert list(second_backward_findings(BackwardStarts(kept, BACKWARD, [first_call()]))) == []


OTHER = Frame(file="rnn.py", line=13, code="(loss_a + loss_b).backward()")


def advice(root: str | None, *, call_root: str | None, line: Frame = OTHER) -> str:
    """Return the remedy where a new node reads an old one that is not the root of the earlier call."""
    recorded = replace(joined(7), roots=(Root(node=0, name=root),))
    call = replace_call(first_call(), call_root)
    (found,) = second_backward_findings(BackwardStarts(recorded, line, [call]))
    return found.remedy


def replace_call(call: EarlierCall, root: str | None) -> EarlierCall:
    """Give a call another root, and one node more than the new graph reads."""
    return EarlierCall(name=call.name, frame=call.frame, root=root, nodes=frozenset(range(4)), clock=call.clock)


def test_two_losses_that_share_a_part() -> None:
    """The earlier one is named by its variable, or as the loss."""
    assert advice("loss_b", call_root="loss_a").startswith(
        "If loss_a at rnn.py:12 is not meant to train what rnn.py:10"
    )
    assert advice("loss_b", call_root=None).startswith("If the loss at rnn.py:12 is not meant to train what rnn.py:10")
    assert advice("loss_b", call_root="loss_a", line=BACKWARD).startswith("Compute rnn.py:10 again in each iteration")


def test_a_loss_that_contains_another_is_enough() -> None:
    """What the new graph reads is the root of the earlier call."""
    recorded = replace(joined(7), roots=(Root(node=0, name="total"),))
    call = EarlierCall(name="backward #1", frame=BACKWARD, root="loss_a", nodes=frozenset({0, 1, 2}), clock=4)
    (found,) = second_backward_findings(BackwardStarts(recorded, OTHER, [call]))

    assert found.remedy == ("total contains loss_a: call total.backward() only, without loss_a.backward() before it.")


def test_what_is_old_as_a_whole_is_known_by_its_root() -> None:
    """The line that made the loss itself, not one before it, and whichever call it is that fails."""
    old = replace(joined(3), nodes=(replace(joined(3).nodes[0], frame=1), *joined(3).nodes[1:]))
    elsewhere, unknown = (
        next(second_backward_findings(BackwardStarts(old, OTHER, calls))) for calls in ([first_call()], [])
    )

    assert [(place.role, place.line) for place in elsewhere.places] == [("made", 11), ("freed", 12), ("backward", 13)]
    assert elsewhere.remedy == (
        "Compute rnn.py:11, and what it reads, again before rnn.py:13, or call backward once on the sum of all losses "
        "of that graph."
    )
    assert unknown.remedy == "Compute rnn.py:11 again before rnn.py:13."


def test_several_nodes_that_have_lost_something_are_counted() -> None:
    """And the last of several calls is the one that freed them."""
    first, second, weight = joined(3).nodes
    both = replace(joined(3), nodes=(replace(first, saved=(FREED, FREED)), second, weight))
    (found,) = second_backward_findings(BackwardStarts(both, BACKWARD, [first_call(), first_call(frame=OTHER)]))

    assert found.text == (
        "backward #1 (rnn.py:13) freed the whole graph, so this backward will fail. (It has 2 nodes: 2 nodes have lost "
        "their saved tensors.)"
    )
    assert found.subjects == ("MulBackward0", "TanhBackward0")


def test_losses_without_a_name_are_the_sum_of_both() -> None:
    """Or with the same name."""
    call = EarlierCall(name="backward #1", frame=BACKWARD, root="loss", nodes=frozenset({2}), clock=4)
    remedies = {
        name: next(
            second_backward_findings(
                BackwardStarts(replace(joined(3), roots=(Root(node=0, name=name),)), OTHER, [call])
            )
        ).remedy
        for name in ("loss", None, "other")
    }

    assert remedies["loss"] == remedies[None]
    assert remedies[None] == (
        "Both losses are known before rnn.py:12: call backward() once on the sum of both instead of both calls."
    )
    assert "call (loss + other).backward() once instead" in remedies["other"]


def test_of_several_places_where_graphs_join_the_first_is_advised_on() -> None:
    """The one nearest to the loss."""
    lines = (OLD, NEW, Frame(file="rnn.py", line=13, code="g = other(h)"))
    nodes = (
        op("MulBackward0", 1, 2, sequence_nr=8, frame=1), op("SinBackward0", 2, sequence_nr=7, frame=2),
        op("TanhBackward0", 3, sequence_nr=2, frame=0, saved=(FREED,)), leaf("w", 4),
    )  # fmt: skip
    call = replace_call(first_call(), "loss_a")
    (found,) = second_backward_findings(BackwardStarts(graph(*nodes, frames=lines), BACKWARD, [call]))

    assert found.remedy.startswith("Compute rnn.py:10 again in each iteration, before rnn.py:11;")
