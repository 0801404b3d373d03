"""What is left of a graph, and the account of what is cut."""

from collections import Counter

import pytest
from factories import gradient_stats, graph, leaf, op, product_plus_two, saved, two_layers
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import examples, graphs

from gradinspect.analyses.structure.cut import cut_graph, describe_cut, edges_of, lost_places, number_of, uses_in_whole
from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.errors import GradInspectError
from gradinspect.graph import Gradients, Graph, ModuleCall, NodeGradients, SavedValue, Storage
from gradinspect.storage import decode_graph, encode_graph


def diamond() -> Graph:
    """A sum of two ways that meet again: 0 to 1 and 2, both to 3, then 4; leaves 5 (used twice) and 6."""
    return graph(
        op("AddBackward0", 1, 2),
        op("MulBackward0", 3, 5, module=1, saved=(saved("_saved_self", 2, storage=0),)),
        op("ExpBackward0", 3, module=2),
        op("MulBackward0", 4, 5, saved=(saved("_saved_other", 100, storage=1),)),
        op("SinBackward0", 6),
        leaf("fc.weight", 3),
        leaf("x", 3),
        modules=(
            ModuleCall(path="", class_name="Net"),
            ModuleCall(path="h.3.attn", class_name="Attention", parent=0),
            ModuleCall(path="h.3.mlp", class_name="MLP", parent=0),
        ),
        storages=(Storage(num_bytes=8), Storage(num_bytes=400)),
    )


def left(**wanted: object) -> set[int]:
    """Return the numbers of what is left of the diamond."""
    _, cut = focus_graph(diamond(), Focus(**wanted))  # type: ignore[arg-type]
    assert cut is not None

    return set(cut.numbers)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({"around": "h.3.attn", "radius": 0}, {1, 5}),
        ({"around": "h.3.attn", "radius": 1}, {0, 1, 3, 5}),
        ({"around": "#1"}, {0, 1, 2, 3, 4, 5, 6}),
        ({"around": "h.3", "radius": 0}, {1, 2, 5}),
        ({"around": "x", "radius": 0}, {4, 6}),
        ({"around": "fc.weight", "radius": 0}, {1, 3, 5}),
        ({"path_to": "fc.weight"}, {0, 1, 2, 3, 5}),
        ({"path_to": "x"}, {0, 1, 2, 3, 4, 6}),
        ({"path_to": "#2"}, {0, 2}),
        ({"where": "class~Mul*"}, {1, 3, 5}),
        ({"where": "bytes>8"}, {3, 5}),
        ({"where": "bytes>=1", "path_to": "h.3.attn"}, {1}),
    ],
)  # fmt: skip
def test_what_is_left(wanted: dict[str, object], numbers: set[int]) -> None:
    """Nodes by distance, on ways, of a class, by bytes; their leaves, but of ways only the end; all that was asked."""
    assert numbers == left(**wanted)


@pytest.mark.parametrize(
    ("name", "whole"), [("attn", "h.3.attn"), ("3.attn", "h.3.attn"), ("weight", "fc.weight"), ("Mul", "MulBackward0")]
)
def test_a_name_may_lack_a_part(name: str, whole: str) -> None:
    """The last parts of a path are enough, and the operator of a class."""
    assert left(around=name, radius=0) == left(around=whole, radius=0)


def test_a_shared_leaf_is_no_bridge() -> None:
    """Two nodes that use one weight are not near one another for that."""
    shared = graph(op("AddBackward0", 1, 2), op("AuBackward0", 3), op("BuBackward0", 3), leaf("w", 3))
    _, cut = focus_graph(shared, Focus(around="#1", radius=1))

    assert cut is not None
    assert cut.numbers == (0, 1, 3)


def test_all_of_the_graph_is_itself() -> None:
    """Without an option nothing is cut."""
    assert focus_graph(diamond(), Focus()) == (diamond(), None)


def test_the_account_of_what_is_cut() -> None:
    """Each lost edge is counted at the end that is left; leaves have all their uses; the words say how much is left."""
    part, cut = focus_graph(diamond(), Focus(around="h.3.attn", radius=0))

    assert cut is not None
    assert [node.name for node in part.nodes] == ["MulBackward0", "AccumulateGrad"]
    assert part.nodes[0].next_edges[0] is None
    assert (part.roots, number_of(cut, 0)) == ((), 1)
    assert (cut.lost_places, cut.lost_users) == ({0: (0,)}, {0: 1, 1: 1})
    assert cut.num_lost([0]) == (1, 1)
    assert Counter({1: 2}) == uses_in_whole(part, cut)
    assert describe_cut(cut) == "1 of 5 nodes, with 1 of 2 leaves: within 0 of h.3.attn"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"around": "h.3.atn"},
            'No class, module or parameter in this graph matches "h.3.atn". Closest matches: "h.3.attn"',
        ),
        (
            {"path_to": "fc.wieght"},
            'No class, module or parameter in this graph matches "fc.wieght". Closest matches: "fc.weight".',
        ),
        ({"where": "size>1"}, 'This table has no field "size". Available: bytes, class'),
        ({"around": "#99"}, "There is no node '#99'. The nodes are #0 to #6."),
        ({"where": "bytes>1000"}, "No node matches 'where bytes>1000'. Name something on a path"),
        (
            {"where": "class~Exp*", "around": "#1", "radius": 0},
            "No node matches 'within 0 of #1, where class~Exp*'. Combine fewer",
        ),
        ({"where": "class~Accumulate*"}, "No node matches 'where class~Accumulate*'."),
    ],
)
def test_what_is_not_there(wanted: dict[str, object], message: str) -> None:
    """One sentence with what was asked for, and what is near."""
    with pytest.raises(GradInspectError) as raised:
        left(**wanted)

    assert message in str(raised.value)


def test_gradients_go_with_their_nodes() -> None:
    """Watched gradients and norms of leaves are kept under the new ids."""
    ran = (NodeGradients(node=0, order=0, incoming=(gradient_stats(1.0),)),
           NodeGradients(node=1, order=1, incoming=(gradient_stats(2.0),)))  # fmt: skip
    watched = replace(product_plus_two(), gradients=Gradients(nodes=ran, weight_norms={2: 3.0}))
    part, _ = cut_graph(watched, {1, 2}, "")

    assert part.gradients == Gradients(nodes=(replace(ran[1], node=0),), weight_norms={1: 3.0})


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(graphs(), st.data())
def test_a_part_is_a_graph(whole: Graph, data: st.DataObject) -> None:
    """Any part can be saved and read, its edges and the lost ones are all there were, and roots stay roots."""
    kept = data.draw(st.sets(st.sampled_from(range(len(whole.nodes)))) if whole.nodes else st.just(set[int]()))
    part, cut = cut_graph(whole, kept, "a part")
    numbers = range(len(whole.nodes))
    inner = sum(edge.next_node in kept for number in kept for _, edge in edges_of(whole, number))
    came = sum(edge.next_node in kept for number in set(numbers) - kept for _, edge in edges_of(whole, number))

    assert decode_graph(encode_graph(part, compressed=False), "run.json") == part
    assert sum(1 for number in range(len(part.nodes)) for _ in edges_of(part, number)) == inner
    assert (came, sum(1 for number in kept for _ in edges_of(whole, number)) - inner) == cut.num_lost(
        range(len(part.nodes))
    )
    assert [whole.roots[place].node in kept for place in range(len(whole.roots))].count(True) == len(part.roots)


def test_a_name_as_it_is_shown_is_found() -> None:
    """A module of a Sequential is shown as `model.2`, so that is a name as its path is."""
    by_path, as_shown = (focus_graph(two_layers(), Focus(around=name))[1] for name in ("2", "model.2"))

    assert by_path is not None
    assert as_shown is not None
    assert by_path.numbers == as_shown.numbers


@pytest.mark.parametrize(
    ("focus", "is_set"),
    [
        (Focus(), False),
        (Focus(radius=3), False),
        (Focus(around="a"), True),
        (Focus(path_to="a"), True),
        (Focus(where="bytes>1"), True),
    ],
)
def test_a_radius_alone_is_no_focus(focus: Focus, is_set: bool) -> None:
    """Each of the others is."""
    assert focus.is_set is is_set


def test_the_radius_counts_edges_in_either_direction() -> None:
    """Two are the default; it ends where nothing more is reached."""
    row = graph(*(op("SinBackward0", place + 1) for place in range(6)), op("CosBackward0"))
    numbers = [focus_graph(row, Focus(around="#3", radius=radius))[1] for radius in (0, 1, 3, 99)]
    usual = focus_graph(row, Focus(around="#3"))[1]

    assert [cut.numbers for cut in numbers if cut] == [(3,), (2, 3, 4), tuple(range(7)), tuple(range(7))]
    assert usual is not None
    assert usual.numbers == (1, 2, 3, 4, 5)


def test_what_is_cut_in_a_graph_that_is_whole() -> None:
    """Nodes have the numbers that they have, and no edge is cut."""
    assert (number_of(None, 3), lost_places(None, 3)) == (3, ())
    assert uses_in_whole(diamond(), None) == Counter({5: 2, 6: 1})


def test_what_made_a_saved_tensor_is_renumbered_or_gone() -> None:
    """A tensor that a node outside of the part made has no maker in it; other values stay as they are."""
    value = saved("_saved_self", 2, storage=0)
    assert value.tensor is not None
    kept = [replace(value, tensor=replace(value.tensor, made_by=maker)) for maker in (None, 1, 2)]
    whole = graph(
        op("AddBackward0", 1, 2, saved=(*kept, SavedValue(name="_saved_dim", kind="int", value=1))),
        op("SinBackward0"), op("CosBackward0"), storages=(Storage(num_bytes=8),),
    )  # fmt: skip
    part, cut = cut_graph(whole, {0, 2}, "")

    assert [saved.tensor.made_by if saved.tensor else saved.value for saved in part.nodes[0].saved] == [
        None,
        None,
        1,
        1,
    ]
    assert (lost_places(cut, 0), lost_places(cut, 1), number_of(cut, 1)) == ((0,), (), 2)
    assert describe_cut(cut) == "2 of 3 nodes: "
