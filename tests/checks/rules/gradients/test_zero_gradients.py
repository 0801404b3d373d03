"""Gradients that are zero before they reach their parameters, as findings, on graphs made by hand."""

from itertools import pairwise

import pytest
from factories import gradient_stats, gradient_through, graph, leaf, op
from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import GradientNote, gradient_notes
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.gradients.zero_gradients import shrunk_gradients, zero_findings
from gradinspect.graph import Gradients, GradientStats, NodeGradients, SavedValue


def found(name: str, came: GradientStats, went: GradientStats) -> list[Finding]:
    """What is said of a node that received one gradient and returned another."""
    recorded = gradient_through(name, came, went)
    return list(zero_findings(BackwardEnded(recorded, gradient_notes(recorded))))


@pytest.mark.parametrize("name", ["RoundBackward0", "ClampBackward1", "ReluBackward0", "MulBackward0"])
def test_a_node_that_returns_zeros_is_named_with_the_parameters(name: str) -> None:
    """With a reason that fits the operator."""
    (finding,) = found(name, gradient_stats(1.0), gradient_stats(0.0))

    assert finding.code == "GI601"
    assert finding.subjects == ("weight",)
    operator = name.partition("Backward")[0].lower()
    assert finding.text.startswith(f"No gradient reaches weight: {operator} at ")
    assert finding.text.endswith(f" ({name} received a gradient and returned only zeros.)")
    assert "unknown" not in finding.text


@pytest.mark.parametrize(
    ("name", "went", "detour", "is_found"),
    [
        ("SoftmaxBackward0", 1e-8, False, True),
        ("SigmoidBackward0", 1e-7, False, True),
        ("SoftmaxBackward0", 1e-3, False, False),
        ("SoftmaxBackward0", 1e-8, True, False),
        ("SoftmaxBackward0", 0.0, False, False),
        ("LogSoftmaxBackward0", 1e-8, False, False),
        ("MulBackward0", 1e-8, False, False),
    ],
)
def test_a_gradient_that_all_but_vanishes(name: str, went: float, detour: bool, is_found: bool) -> None:
    """In a function that squashes, and where no other way leads to the weight; exactly zero is another case."""
    graph = gradient_through(name, gradient_stats(1.0), gradient_stats(went), detour=detour)

    assert [note.parameters for note in shrunk_gradients(graph)] == [("weight",)] * is_found


def test_how_much_is_left_is_told() -> None:
    """Both norms."""
    (finding,) = found("SoftmaxBackward0", gradient_stats(2.0), gradient_stats(3e-8))

    assert "lets none through. Its outputs" in finding.text
    assert finding.text.endswith("(SoftmaxBackward0 received a gradient of norm 2.0e+00 and returned one of 3.0e-08.)")


def difference(name: str, *next_edges: int | tuple[int, int] | None) -> list[Finding]:
    """Judge a node in front of two layers, whose weights get zeros."""
    zero = gradient_stats(0.0)
    ran = (NodeGradients(node=0, order=0, incoming=(gradient_stats(1.0),)),
           *(NodeGradients(node=number, order=number, incoming=(zero,)) for number in range(1, 5)))  # fmt: skip
    recorded = graph(
        op(name, *next_edges), op("AddmmBackward0", 3), op("AddmmBackward0", 4), leaf("a", 4), leaf("b", 4),
        gradients=Gradients(nodes=ran),
    )  # fmt: skip
    return list(zero_findings(BackwardEnded(recorded, ())))


@pytest.mark.parametrize(
    ("name", "next_edges", "names"),
    [
        ("SubBackward0", (1, 1), [("a",)]),
        ("DivBackward0", (2, 2), [("b",)]),
        ("SubBackward0", (1, 2), []),
        ("SubBackward0", ((1, 0), (1, 1)), []),  # two outputs of one node
        ("SubBackward0", (1,), []),
        ("SubBackward0", (), []),
        ("DivBackward0", (None, 1), []),
        ("SubBackward0", (None, None), []),
        ("AddBackward0", (1, 1), []),
    ],
)
def test_a_tensor_minus_or_over_itself_passes_nothing_on(
    name: str, next_edges: tuple[int | tuple[int, int] | None, ...], names: list[tuple[str, ...]]
) -> None:
    """The parameters behind it get no other gradient."""
    findings = difference(name, *next_edges)

    assert [finding.subjects for finding in findings] == names
    assert all("received a gradient and passed on its opposite as well" in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [
        ("DivBackward0", "floor", "The derivative of a division that rounds is zero everywhere."),
        ("DivBackward0", None, "The cause is unknown."),
        ("MulBackward0", "floor", "The other factor is zero everywhere, as a mask may be."),
        ("FloorBackward0", None, "Its derivative is zero everywhere."),
    ],
)
def test_a_division_that_rounds_is_told_from_others(name: str, mode: str | None, why: str) -> None:
    """By its rounding mode."""
    recorded = gradient_through(name, gradient_stats(1.0), gradient_stats(0.0))
    saved = (SavedValue(name="_saved_rounding_mode", kind="str", value=mode),)
    first, node, weight = recorded.nodes
    recorded = replace(recorded, nodes=(first, replace(node, saved=saved), weight))
    (finding,) = zero_findings(BackwardEnded(recorded, gradient_notes(recorded)))

    assert f"lets none through. {why} (" in finding.text


def stuck(*names: str, kind: str = "killed", layer: tuple[int, ...] = (4, 4), norm: float = 0.0) -> list[str]:
    """Judge a ReLU between a layer of zeros and its weights: which codes it has if it is said to be to blame."""
    zero, one = gradient_stats(0.0), gradient_stats(1.0)
    ran = [
        NodeGradients(node=number, order=number, incoming=(stats,))
        for number, stats in enumerate((one, one, zero, zero))
    ]
    recorded = graph(
        op("ReluBackward0", 1), op("AddmmBackward0", 3, 2), leaf("w", *layer), leaf("b", 4),
        gradients=Gradients(nodes=tuple(ran), weight_norms={2: norm, 3: 0.0}),
    )  # fmt: skip
    note = GradientNote(kind=kind, text="", node=0, parameters=names)  # type: ignore[arg-type]
    return [finding.code for finding in zero_findings(BackwardEnded(recorded, [note]))]


def test_weights_that_are_zeros_explain_zero_gradients() -> None:
    """If nothing is beside them but biases; another matrix, or a bias alone, they do not explain."""
    assert stuck("w") == []
    assert stuck("w", "b") == []
    assert stuck("b") == ["GI601"]
    assert stuck("w", "other") == ["GI601"]
    assert stuck("w", norm=1.0) == ["GI601"]
    assert stuck("w", layer=(4,)) == ["GI601"]


def test_other_notes_are_no_zero_gradients() -> None:
    """Neither those of another kind, nor of nodes that concern no parameter."""
    assert stuck("b", kind="infected") == []
    assert stuck("b", kind="unreached") == []
    assert stuck() == []


def test_each_squashing_node_is_looked_at() -> None:
    """Also after one that passes its gradient on, and one of which no weight depends alone."""
    norms = [1.0, 0.5, 1e-8, 1e-16]
    ran = [
        NodeGradients(node=place, order=place, incoming=(gradient_stats(came),), outgoing=(None, gradient_stats(went)))
        for place, (came, went) in enumerate(pairwise(norms))
    ]
    names = ("TanhBackward0", "SigmoidBackward0", "ErfBackward0")
    recorded = graph(
        *(op(name, place + 1) for place, name in enumerate(names)), op("AddBackward0", 4, 5), leaf("a", 4),
        leaf(None, 4), gradients=Gradients(nodes=tuple(ran)),
    )  # fmt: skip

    assert [(note.node, note.parameters) for note in shrunk_gradients(recorded)] == [(1, ("a", "#5")), (2, ("a", "#5"))]
