"""Normalizations over a single value, on graphs made by hand."""

import pytest
from factories import graph, leaf, op

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.rules.gradients.lone_values import lone_value_findings
from gradinspect.graph import Frame, SavedValue


@pytest.mark.parametrize(
    ("name", "attributes", "is_lone"),
    [
        ("NativeLayerNormBackward0", {"normalized_shape": (1,)}, True),
        ("NativeLayerNormBackward0", {"normalized_shape": (4, 2)}, False),
        ("NativeLayerNormBackward0", {}, False),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 1, "group": 6}, True),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 1, "group": 3}, False),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 4, "group": 6}, False),
        ("NativeGroupNormBackward0", {"HxW": 1, "group": 6}, False),
        ("NativeGroupNormBackward0", {"C": 6, "group": 6}, False),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 1}, False),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 1, "group": 0}, False),
        ("MulBackward0", {"normalized_shape": (1,)}, False),
    ],
)
def test_the_number_of_values_is_read_from_the_node(
    name: str, attributes: dict[str, int | tuple[int, ...]], *, is_lone: bool
) -> None:
    """One value minus its own mean is 0."""
    values = tuple(SavedValue(name=f"_saved_{key}", kind="int", value=value) for key, value in attributes.items())
    recorded = graph(op("MeanBackward0", 1), op(name, 2, saved=values), leaf("weight", 1, 4))
    found = list(lone_value_findings(BackwardStarts(recorded)))

    assert [finding.code for finding in found] == ["GI601"] * is_lone


def test_without_a_gradient_to_pass_on_it_is_none() -> None:
    """Its input needs no gradient."""
    values = (SavedValue(name="_saved_normalized_shape", kind="tuple", value=(1,)),)
    recorded = graph(op("NativeLayerNormBackward0", None, 1, saved=values), leaf("weight", 1))

    assert not list(lone_value_findings(BackwardStarts(recorded)))


@pytest.mark.parametrize(
    ("name", "attributes", "what"),
    [
        ("NativeLayerNormBackward0", {"normalized_shape": (1,)}, "layer norm"),
        ("NativeGroupNormBackward0", {"C": 6, "HxW": 1, "group": 6}, "group norm"),
    ],
)
def test_the_normalization_is_named(name: str, attributes: dict[str, int | tuple[int, ...]], what: str) -> None:
    """With its line."""
    values = tuple(SavedValue(name=f"_saved_{key}", kind="int", value=value) for key, value in attributes.items())
    line, backward = Frame(file="net.py", line=4), Frame(file="train.py", line=9)
    recorded = graph(op(name, 1, saved=values, frame=0), leaf("weight", 1, 4), frames=(line,))
    (found,) = lone_value_findings(BackwardStarts(recorded, backward))

    assert found.text.startswith(f"The {what} normalizes over a single value.")
    assert found.remedy == f"Remove the {what} of net.py:4, or let it normalize over several values."
    assert [(place.role, place.line) for place in found.places] == [("zeroed", 4), ("backward", 9)]
