"""Gradients that are zero before they reach their parameters, as findings, on graphs made by hand."""

import pytest
from factories import gradient_stats, gradient_through, graph, leaf, op

from gradinspect.analyses.gradients.observed import gradient_notes
from gradinspect.checks.facts import BackwardEnded
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.gradients.zero_gradients import shrunk_gradients, zero_findings
from gradinspect.graph import Gradients, GradientStats, NodeGradients


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
    assert finding.text.startswith(f"{name} received a gradient and returned only zeros.")
    assert finding.text.endswith(" No gradient reaches weight.")
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

    assert finding.text.startswith(
        "SoftmaxBackward0 received a gradient of norm 2.0e+00 and returned one of 3.0e-08. Its outputs"
    )


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
