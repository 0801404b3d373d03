"""Chains of nodes that only change a shape."""

import pytest
from factories import graph, leaf, op, walk_scopes
from hypothesis import given, settings
from inline_snapshot import snapshot
from msgspec.structs import replace
from strategies import examples, graphs

from gradinspect.analyses.structure.folding import Scope, fold_graph, node_ids
from gradinspect.analyses.structure.shape_chains import chain_links, chain_title, shape_name
from gradinspect.graph import Graph, Hook, ModuleCall
from gradinspect.renderers.picture.dot.document import render_dot
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree


def attention() -> Graph:
    """A product of something reshaped twice and a weight that is transposed, unsqueezed and used once."""
    return graph(
        op("MmBackward0", 1, 3, shape=(6, 4)),
        op("ViewBackward0", 2, shape=(6, 2)),
        op("TransposeBackward0", 5, shape=(3, 2, 2)),
        op("TBackward0", 4, shape=(2, 4)),
        op("SqueezeBackward1", 6, shape=(4, 2)),
        op("ExpBackward0", None, shape=(3, 2, 2)),
        leaf("fc.weight", 4, 1, 2),
        arguments={"MmBackward0": ("self", "mat2")},
    )


def chains(folded: Scope) -> list[range]:
    """List the ids of each chain."""
    return [node_ids(scope) for scope in walk_scopes(folded) if scope.kind == "shapes"]


def test_names() -> None:
    """Any version of a view's class counts, and a copy, a cast or a custom class does not."""
    names = ["ViewBackward0", "SqueezeBackward1", "CloneBackward0", "ToCopyBackward0", "View", "MyViewBackward"]

    assert [shape_name(op(name)) for name in names] == ["View", "Squeeze", None, None, None, None]


def test_chains_fold_on_request() -> None:
    """Neighbours that only each other use are one scope; without the option, none."""
    assert sorted(map(list, chains(fold_graph(attention(), shapes=True)))) == [[1, 2], [3, 4]]
    assert not chains(fold_graph(attention()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hooks": (Hook(kind="pre"),)}, "a hook is to be seen"),
        ({"name": "CloneBackward0"}, "a copy is more than a view"),
        ({"module": 0}, "a module's border is to be seen"),
    ],
)
def test_what_is_to_be_seen_is_no_link(change: dict[str, object], why: str) -> None:
    """The first chain is not folded when its second link is more than a link."""
    changed = attention()
    nodes = [*changed.nodes[:2], replace(changed.nodes[2], **change), *changed.nodes[3:]]
    modules = (ModuleCall(path="a", class_name="A"),)
    folded = fold_graph(replace(changed, nodes=tuple(nodes), modules=modules), shapes=True)

    assert list(map(list, chains(folded))) == [[3, 4]], why


def test_a_root_and_a_fork_end_a_chain() -> None:
    """What is the start of backward, or is reached twice, keeps a box of its own."""
    twice = graph(op("AddBackward0", 1, 2), op("ViewBackward0", 2), op("TBackward0", 3), op("ExpBackward0", None))
    root = graph(op("ViewBackward0", 1), op("TBackward0", 2), op("ExpBackward0", None), roots=(0, 1))

    assert chain_links(twice) == chain_links(root) == frozenset()


def test_the_tree_names_the_links() -> None:
    """A chain is one row, with the leaf behind it, as a view of a leaf is."""
    lines = render_tree(attention(), TreeOptions(fold_shapes=True, depth=9))

    assert "\n".join(line.plain for line in lines) == snapshot("""\
root: #0 MmBackward0  f32[6, 4]
├─ mat2: #3–4  T → Squeeze  2 nodes  → ◆ fc.weight  f32[4, 1, 2]
#1–2  View → Transpose  f32[6, 2]  2 nodes
#5 ExpBackward0  f32[3, 2, 2]  [0]: None
gradients flow down · ◆ leaf (AccumulateGrad)\
""")


def test_the_picture_names_the_links() -> None:
    """A chain is one box with its leaf, and the caption counts the chains."""
    dot = render_dot(attention(), DrawOptions(fold_shapes=True))

    assert "<B>View → Transpose</B>" in dot
    assert "shapes3 -> shapes3_leaf6" in dot
    assert "n0 -> shapes1 [weight" in dot
    assert "2 chains of views and transposes folded into one box each" in dot


def test_title() -> None:
    """Links stand in the direction gradients flow."""
    assert chain_title(list(attention().nodes[1:3])) == "View → Transpose"


@settings(max_examples=examples(30))
@given(graphs())
def test_chains_are_chains(drawn: Graph) -> None:
    """Every chain is of two views at least, linked one to the next and otherwise to nothing."""
    views = {"MulBackward0": "ViewBackward0", "AddBackward0": "TBackward0"}
    nodes = tuple(replace(node, name=views.get(node.name, node.name)) for node in drawn.nodes)
    shaped = replace(drawn, nodes=nodes)
    for ids in chains(fold_graph(shaped, shapes=True)):
        targets = [[edge.next_node for edge in nodes[number].next_edges if edge is not None] for number in ids]

        assert len(ids) > 1
        assert [[number] for number in ids[1:]] == targets[:-1]
        assert not [number for number in range(len(nodes)) if number not in ids[:-1]
                    for edge in nodes[number].next_edges if edge and edge.next_node in ids[1:]]  # fmt: skip
