"""Graphs of live tensors, and what is left behind."""

import pytest
import torch
from torch import nn

import gradinspect as gi


def test_a_graph_is_named_after_the_callers_variables() -> None:
    """Parameters by their paths, the root and the source by what the caller wrote."""
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    loss = net(torch.ones(1, 2)).sum()
    graph = gi.capture(loss)

    assert graph.source.endswith("test_capturing.py")
    assert [root.name for root in graph.roots] == ["loss"]
    assert {node.leaf.name for node in graph.nodes if node.leaf} == {"0.weight", "0.bias"}


def test_a_model_that_no_variable_holds_can_be_given() -> None:
    """Its parameters have their names."""

    def made() -> tuple[torch.Tensor, list[object]]:
        net = nn.Linear(2, 2)
        return net(torch.ones(1, 2)).sum(), [net]

    loss, holder = made()
    graph = gi.capture(loss, model=holder[0])

    assert {node.leaf.name for node in graph.nodes if node.leaf} == {"weight", "bias"}


def test_what_has_no_graph_is_one_sentence() -> None:
    """It names the type that was given, and no option of the command line."""
    with pytest.raises(gi.GradInspectError, match="type 'Tensor' has a graph") as caught:
        gi.capture(torch.ones(2))

    assert "--" not in str(caught.value)
