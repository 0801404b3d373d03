"""Weights that are zeros and stay so, on graphs made by hand."""

from factories import gradient_stats, graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardEnded, LeafValues
from gradinspect.checks.rules.gradients.zero_weights import stuck_findings, stuck_weights
from gradinspect.graph import Frame, Gradients, Graph, Node, NodeGradients


def layers(first: Node, *, weight: float = 0.0, arrived: float = 0.0, reached: float = 1.0) -> Graph:
    """Make a layer that reads a view of a first weight, and a second one of another size."""
    norms = {0: reached, 3: arrived, 4: 0.5}
    ran = [NodeGradients(node=node, order=node, incoming=(gradient_stats(size), None)) for node, size in norms.items()]
    return graph(
        op("AddmmBackward0", 2, 1, frame=0), op("TBackward0", 3), op("MulBackward0", 4), first, leaf("v", 3, 3),
        frames=(Frame(file="net.py", line=8),),
        gradients=Gradients(nodes=tuple(ran), weight_norms={3: weight, 4: 1.0}),
    )  # fmt: skip


def test_a_weight_of_zeros_that_gets_zeros_is_stuck() -> None:
    """If the operator that reads it received a gradient; past what only arranges it."""
    assert stuck_weights(layers(leaf("w", 3, 3))) == ["w"]
    assert stuck_weights(layers(leaf(None, 3, 3))) == ["#3"]


def test_other_weights_are_not() -> None:
    """One that is not zero, gets a gradient, is a bias, or whose layer got none."""
    assert stuck_weights(layers(leaf("w", 3, 3), weight=0.1)) == []
    assert stuck_weights(layers(leaf("w", 3, 3), arrived=0.1)) == []
    assert stuck_weights(layers(leaf("w", 3))) == []
    assert stuck_weights(layers(leaf("w", 3, 3), reached=0.0)) == []


def test_the_lines_that_made_them_zero_are_named() -> None:
    """In order, up to three; and where the weight is used."""
    made = Frame(file="net.py", line=3)
    ended = BackwardEnded(
        layers(leaf("w", 3, 3)), (), Frame(file="net.py", line=20),
        values_of=lambda _: LeafValues("zero", made, lambda: 0.0),
    )  # fmt: skip
    (found,) = stuck_findings(ended)
    (unknown,) = stuck_findings(BackwardEnded(layers(leaf("w", 3, 3)), ()))

    assert [(place.role, place.line) for place in found.places] == [("zeros", 3), ("used", 8), ("backward", 20)]
    assert found.text.startswith("w is all zeros, and the gradient is zero as well")
    assert found.remedy.startswith("Initialize w with small random values at net.py:3, as torch does by default.")
    assert unknown.remedy.startswith("Initialize w with small random values, as torch does by default.")
    assert found.subjects == ("w",)


def test_many_lines_are_too_many_to_name() -> None:
    """Three of them are, the first ones of each file."""
    count = 5
    nodes = [op("AddmmBackward0", place + 1 if place + 1 < count else None, count + place) for place in range(count)]
    leaves = [leaf(f"w{place}", 3, 3) for place in range(count)]
    ran = [NodeGradients(node=node, order=node, incoming=(gradient_stats(float(node < count)),)) for node in range(10)]
    gradients = Gradients(nodes=tuple(ran), weight_norms=dict.fromkeys(range(count, 2 * count), 0.0))
    ended = BackwardEnded(
        graph(*nodes, *leaves, gradients=gradients), (),
        values_of=lambda node: LeafValues("zero", Frame(file="net.py", line=20 - node), lambda: 0.0),
    )  # fmt: skip
    (found,) = stuck_findings(ended)

    assert [place.line for place in found.places] == [11, 12, 13]
    assert found.text.startswith("w0, w1, w2, w3 and 1 more are all zeros")
