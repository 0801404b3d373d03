"""Whether a graph is alive, without keeping it alive."""

import torch

from gradinspect.observers.graphs.live_graph import Survivors


def test_the_nodes_of_a_graph_are_told_to_be_dead_as_soon_as_they_are() -> None:
    """While a tensor of the program keeps one node alive there are survivors, and then there are none."""
    x = torch.randn(3, requires_grad=True)
    loss = (x * 2).sum()
    inner = loss.grad_fn.next_functions[0][0]
    handles = [loss.grad_fn.register_hook(print), inner.register_hook(print)]
    survivors = Survivors(handles)
    for handle in handles:
        handle.remove()

    assert survivors.are_there()
    del inner
    assert survivors.are_there()
    del loss
    assert not survivors.are_there()
