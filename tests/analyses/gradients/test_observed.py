"""Rows and findings of a backward call, from numbers made by hand."""

import math
from typing import Any

from factories import gradient_stats as stats
from factories import graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.gradients.folded import folded_flow
from gradinspect.analyses.gradients.observed import (
    GradientNote,
    arriving_norm,
    compiled_notes,
    fall_of,
    flow_rows,
    gradient_notes,
    parameter_rows,
    unmeasured_notes,
)
from gradinspect.graph import Frame, Gradients, GradientStats, Graph, ModuleCall, NodeGradients, Root, TensorInfo
from gradinspect.renderers.terminal.gradients.call import GradientsPage


def ran(node: int, incoming: float | GradientStats, *outgoing: float | GradientStats) -> NodeGradients:
    """Make what was seen of one node; nodes run in the order of their ids."""

    def made(value: float | GradientStats) -> GradientStats:
        return value if isinstance(value, GradientStats) else stats(value)

    return NodeGradients(node=node, order=node, incoming=(made(incoming),), outgoing=tuple(map(made, outgoing)))


def chain(**fields: Any) -> Graph:
    """Three layers in a row, each of one node with a weight."""
    return graph(
        op("MulBackward0", 1, 3, module=3, frame=0),
        op("MulBackward0", 2, 4, module=2, frame=0),
        op("MulBackward0", None, 5, module=1, frame=0),
        leaf("layers.2.weight", 10), leaf("layers.1.weight", 10), leaf("layers.0.weight", 10),
        modules=(
            ModuleCall(path="", class_name="Net"),
            *(ModuleCall(path=f"layers.{i}", class_name="Scale", parent=0) for i in range(3)),
        ),
        frames=(Frame(file="net.py", line=3, code="x = x * self.weight"),),
        **fields,
    )  # fmt: skip


def watched(*nodes: NodeGradients, loss: float | None = 1.0) -> Graph:
    """Put together what was seen of the chain."""
    return chain(gradients=Gradients(nodes=nodes, weight_norms={3: 2.0, 4: 0.0}, loss=loss))


def kinds(found: tuple[GradientNote, ...]) -> list[str]:
    """Name the findings."""
    return [finding.kind for finding in found]


def test_rows_of_parameters_and_modules() -> None:
    """From the loss to the inputs; a ratio where the weight is not zero."""
    found = watched(ran(0, 4.0, 2.0, 1.0), ran(1, 2.0, 1.0, 1.0), ran(2, 1.0), ran(3, 1.0), ran(4, 1.0))

    assert [(row.name, row.ratio, row.stats is None) for row in parameter_rows(found)] == [
        ("layers.2.weight", 0.5, False), ("layers.1.weight", None, False), ("layers.0.weight", None, True),
    ]  # fmt: skip
    assert [(row.path, row.depth, row.stats.norm) for row in flow_rows(found)] == [
        ("", 0, 4.0), ("layers.2", 1, 4.0), ("layers.1", 1, 2.0), ("layers.0", 1, 1.0),
    ]  # fmt: skip
    assert kinds(gradient_notes(found)) == ["missing"]


def test_the_node_that_made_it_non_finite() -> None:
    """The first one in the order of backward, and no later one."""
    bad = stats(float("nan"), bad=3)
    found = watched(
        ran(0, 1.0, 1.0, 1.0), ran(1, 1.0, bad, bad), ran(2, bad, bad), ran(4, bad), ran(3, 1.0), ran(5, bad)
    )
    (finding,) = [finding for finding in gradient_notes(found) if finding.kind == "non-finite"]

    assert finding.node == 1
    assert finding.text == (
        "#1 MulBackward0 (net.py:3  x = x * self.weight) received a finite gradient and returned 6 of 20 elements "
        "as NaN or Inf."
    )
    assert finding.parameters == ("layers.1.weight", "layers.0.weight")


def test_a_node_that_passes_on_zeros() -> None:
    """To all of its inputs; what is below it gets no gradient, and is not blamed."""
    zero = stats(0.0, zeros=10)
    found = watched(
        ran(0, 1.0, 1.0, 1.0), ran(1, 1.0, zero, zero), ran(2, zero, zero), ran(3, 1.0), ran(4, zero), ran(5, zero)
    )
    (finding,) = gradient_notes(found)

    assert (finding.kind, finding.node) == ("killed", 1)
    assert finding.parameters == ("layers.1.weight", "layers.0.weight")


def test_the_fall_is_between_the_innermost_modules_at_both_ends() -> None:
    """And none is told of one module alone, nor of a gradient that is not finite."""
    fall = fall_of(watched(ran(0, 4.0, 2.0), ran(1, stats(math.nan, bad=1), 1.0), ran(2, 1.0)))

    assert fall is not None
    assert (fall.closest.path, fall.farthest.path, fall.factor) == ("layers.2", "layers.0", 4.0)
    assert fall_of(watched(ran(0, 4.0, 2.0))) is None


def test_a_module_that_makes_the_loss_is_no_end_of_the_fall() -> None:
    """What backward starts from says nothing of the network."""
    found = watched(ran(0, 1.0, 2.0), ran(1, 4.0, 1.0), ran(2, 2.0))
    loss = Root(node=0, info=TensorInfo(shape=(), dtype="float32"))
    fall = fall_of(replace(found, roots=(loss,)))

    assert fall is not None
    assert (fall.closest.path, fall.farthest.path, fall.factor) == ("layers.1", "layers.0", 2.0)


def test_networks_beside_each_other_have_a_fall_each() -> None:
    """As two critics in one loss: the one whose gradient changes most is named, and none is compared with the other."""
    norms = (1.0, 8.0, 4.0, 1.0, 0.1)
    record = graph(
        op("AddBackward0", 1, 3),
        op("AddmmBackward0", 2, module=0), op("AddmmBackward0", None, module=1),
        op("AddmmBackward0", 4, module=2), op("AddmmBackward0", None, module=3),
        modules=tuple(ModuleCall(path=path, class_name="Linear") for path in ("b.head", "b.stem", "a.head", "a.stem")),
        gradients=Gradients(nodes=tuple(ran(number, norm) for number, norm in enumerate(norms))),
    )  # fmt: skip
    fall = fall_of(record)

    assert fall is not None
    assert (fall.closest.path, fall.farthest.path, fall.factor) == ("a.head", "a.stem", 10.0)


def test_chains_that_vanish_or_explode() -> None:
    """By a factor of a thousand from one end to the other; less is no finding."""

    def through(*norms: float) -> list[tuple[str, str]]:
        nodes = [ran(number, norm, norm) for number, norm in enumerate(norms)]
        notes = gradient_notes(watched(*nodes, ran(3, 1.0), ran(4, 1.0), ran(5, 1.0)))
        return [(note.kind, note.text.partition(", ")[0]) for note in notes]

    falls = "The gradient falls from 1.0e+00 at module layers.2 to 1.0e-04 at module layers.0"
    rises = "The gradient rises from 1.0e+00 at module layers.2 to 1.0e+04 at module layers.0"
    assert through(1.0, 1e-2, 1e-4) == [("vanishing", falls)]
    assert through(1.0, 1e2, 1e4) == [("exploding", rises)]
    assert through(1.0, 0.1, 0.01) == []


def test_a_loss_that_is_not_finite_comes_first() -> None:
    """It is not backward's fault."""
    found = watched(ran(0, 1.0, 1.0), ran(3, 1.0), ran(4, 1.0), ran(5, 1.0), loss=float("inf"))

    assert gradient_notes(found)[0].text == "The loss itself is inf: the forward pass produced it."


def test_calls_of_one_module_are_a_chain_too() -> None:
    """The steps of a recurrent cell, up to where nothing is left."""
    norms = (1.0, 1e-3, 1e-6, 0.0)
    record = graph(
        *(op("TanhBackward0", number + 1 if number < 3 else None, module=3 - number) for number in range(4)),
        modules=tuple(ModuleCall(path="cell", class_name="RNNCell", call=number + 1) for number in range(4)),
    )
    nodes = tuple(ran(number, norm, norm) for number, norm in enumerate(norms))
    (finding,) = gradient_notes(replace(record, gradients=Gradients(nodes=nodes)))

    assert finding.kind == "vanishing"
    assert finding.text == "The gradient falls from 1.0e+00 at call 4 to 1.0e-06 at call 2, through 3 calls of cell."


WHY = "'aten::aminmax' is not implemented on sim"


def test_unmeasured_is_neither_missing_nor_zero() -> None:
    """It is said with its reason, and counted; nothing is found in it, nor concluded from what is beside it."""
    lost = NodeGradients(node=4, order=4, incoming=(WHY,))
    partly = NodeGradients(node=1, order=1, incoming=(stats(2.0),), outgoing=(WHY, stats(0.0)))
    inner = NodeGradients(node=2, order=2, incoming=(WHY,), outgoing=(stats(1.0, bad=3), None))
    found = watched(ran(0, 4.0, 2.0, 1.0), partly, inner, ran(3, 1.0), lost)

    assert [(row.name, row.is_missing, row.unmeasured) for row in parameter_rows(found)] == [
        ("layers.2.weight", False, None), ("layers.1.weight", False, WHY), ("layers.0.weight", True, None),
    ]  # fmt: skip
    assert kinds(gradient_notes(found)) == ["missing"]
    assert gradient_notes(found)[0].parameters == ("layers.0.weight",)
    assert unmeasured_notes(found) == (f"Gradients at 3 nodes were not measured: {WHY}.",)
    assert [row.path for row in flow_rows(found)] == ["", "layers.2", "layers.1"]
    assert [arriving_norm(one) for one in (partly, inner)] == [2.0, None]


def test_a_row_is_inside_of_those_that_have_one() -> None:
    """A module whose output could not be measured has none, and hides nothing of what is inside of it."""
    found = watched(NodeGradients(node=0, order=0, incoming=(f"{WHY}.",)), ran(1, 2.0, 1.0), ran(2, 1.0))
    flow = flow_rows(found)

    assert unmeasured_notes(found) == (f"Gradients at 1 node were not measured: {WHY}.",)
    assert [(row.path, row.depth) for row in flow] == [("layers.1", 0), ("layers.0", 0)]
    assert [line.plain.split()[0] for line in GradientsPage(width=72).flow(folded_flow(flow))][1] == "layers.0-1"


def test_what_is_inside_compiled_nodes_is_not_measured() -> None:
    """It is said, with the option that compiles nothing."""
    found = watched(ran(0, 1.0), ran(1, 1.0))
    nodes = tuple(replace(node, kind="compiled") if number < 2 else node for number, node in enumerate(found.nodes))

    assert compiled_notes(found) == ()
    assert compiled_notes(replace(found, nodes=nodes)) == (
        "Not measured: inside 2 compiled nodes. --eager compiles nothing.",
    )


def test_an_empty_gradient_is_neither_missing_nor_zero() -> None:
    """It arrived, and has no element that could be zero."""
    empty = GradientStats((0,), "float32", 0.0, 0.0, 0.0, 0, 0, 0)
    found = watched(ran(0, 4.0, empty), ran(1, 2.0, 1.0), ran(2, 1.0), ran(3, empty), ran(4, 1.0), ran(5, 1.0))

    assert kinds(gradient_notes(found)) == []
    assert (empty.is_zero, empty.teaches) == (False, False)


def test_what_is_zero_is_counted() -> None:
    """A norm may be 0 where elements are not, in a record of another version; and infinite where all are finite."""
    tiny, huge = replace(stats(0.0), num_zeros=9), stats(math.inf)
    found = watched(ran(0, 4.0, tiny), ran(1, 2.0, 1.0), ran(2, 1.0), ran(3, tiny), ran(4, huge), ran(5, 1.0))

    assert kinds(gradient_notes(found)) == []
    assert (tiny.teaches, huge.teaches) == (True, True)


def test_parameters_of_the_model_that_are_not_in_the_graph() -> None:
    """A custom Function may call backward itself, as a reentrant checkpoint does: what it reaches is not known."""
    graph = replace(watched(ran(0, 1.0, 1.0)), unreached=("h.0.bias", "h.1.bias"))
    custom = replace(graph, nodes=(replace(graph.nodes[0], kind="custom"), *graph.nodes[1:]))
    called = replace(graph, captured_at=replace(graph.captured_at, kind="grad"))
    note, careful = (gradient_notes(each)[-1] for each in (graph, custom))

    assert note.text.startswith("2 parameters of the model are not in this graph. This call gives them no gradient")
    assert "Unless a custom Function does" in careful.text
    assert note.parameters == careful.parameters == graph.unreached
    assert "missing" not in kinds(gradient_notes(called))
    page = "\n".join(map(str, GradientsPage(width=80, unicode=True).notes((note,), "model")))
    assert page.endswith("\n  h.0-1.bias")
