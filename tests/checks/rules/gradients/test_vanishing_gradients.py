"""Gradients that vanish along a row of activations, on graphs made by hand."""

import pytest
from factories import gradient_stats, graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import Finding
from gradinspect.checks.rules.gradients.vanishing_gradients import vanishing_findings
from gradinspect.graph import Frame, Gradients, Graph, NodeGradients

MADE = Frame(file="net.py", line=4)


def tower(*norms: float, name: str = "SigmoidBackward0", skips: bool = False) -> Graph:
    """Make activations one behind the other, that return gradients of these norms, and a weight behind the last."""
    count = len(norms)
    came = (1.0, *norms)
    nodes = [op("AddBackward0", 1, count + 1 if skips else None)]
    nodes += [op(name, number + 2) for number in range(count)]
    ran = [
        NodeGradients(
            node=number + 1, order=number, incoming=(gradient_stats(came[number]),),
            outgoing=(gradient_stats(norms[number]),),
        )
        for number in range(count)
    ]  # fmt: skip
    return graph(*nodes, leaf("first", 4, 4), gradients=Gradients(nodes=tuple(ran)))


def found(recorded: Graph, method: str = "SGD") -> list[Finding]:
    """What is said where one optimizer holds all leaves."""
    ended = BackwardEnded(recorded, (), method_of=lambda _node: method, made_at=lambda _node: MADE)
    return list(vanishing_findings(ended))


@pytest.mark.parametrize(
    ("recorded", "method", "is_found"),
    [
        (tower(0.1, 1e-2, 1e-5), "SGD", True),
        (tower(0.1, 1e-2, 1e-5), "Adam", False),
        (tower(0.1, 1e-2, 1e-5), "", False),
        (tower(0.1, 1e-4, 1e-8), "Adam", True),
        (tower(0.1, 1e-2, 1e-3), "SGD", False),
        (tower(0.1, 1e-5), "SGD", False),
        (tower(0.1, 1e-2, 0.0), "SGD", False),
        (tower(0.1, 1e-2, 1e-5, skips=True), "SGD", False),
        (tower(0.1, 1e-2, 1e-5, name="MulBackward0"), "SGD", False),
    ],
)
def test_little_is_left_behind_a_row(recorded: Graph, method: str, *, is_found: bool) -> None:
    """Less, if the optimizer makes up for it; a way around ends a row, and two activations are none."""
    assert [one.code for one in found(recorded, method)] == ["GI605"] * is_found


def test_both_ends_are_told() -> None:
    """With what each layer passes on, and the line of the first layer behind."""
    (finding,) = found(tower(0.1, 1e-2, 1e-3, 1e-6, 1e-9))

    assert finding.subjects == ("first",)
    assert "are 4 activation functions one behind the other: sigmoid." in finding.text
    assert (
        "a gradient of norm 1.0e+00 and the last returns one of 1.0e-06, so each layer passes on 0.032" in finding.text
    )
    assert [(place.role, place.line) for place in finding.places] == [("layer", 4)]


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("SigmoidBackward0", "Put a BatchNorm before each sigmoid"),
        ("TanhBackward0", "Use nn.init.xavier_normal_(weight, gain=5 / 3) at net.py:4"),
        (
            "LeakyReluBackward0",
            "Use nn.init.kaiming_normal_(weight) at net.py:4, or put a BatchNorm before each leaky_",
        ),
    ],
)
def test_the_remedy_fits_the_function(name: str, beginning: str) -> None:
    """What helps a sigmoid is not the initial values."""
    (finding,) = found(tower(0.1, 1e-2, 1e-5, name=name))

    assert (finding.remedy or "").startswith(beginning)
