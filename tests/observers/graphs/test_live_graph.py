"""Whether a graph is alive, without keeping it alive."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
import torch

from gradinspect.observers.graphs.live_graph import LiveGraph, Survivors
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.hooks import NodeHooks


def test_the_nodes_of_a_graph_are_told_to_be_dead_as_soon_as_they_are() -> None:
    """While a tensor of the program keeps one node alive there are survivors, and then there are none."""
    x = torch.randn(3, requires_grad=True)
    loss = (x * 2).sum()
    inner = loss.grad_fn.next_functions[0][0]
    hooks = NodeHooks()
    hooks.add(loss.grad_fn.register_hook(print))
    hooks.add(inner.register_hook(print))
    survivors = Survivors(hooks.nodes)
    hooks.remove()

    assert survivors.are_there()
    del inner
    assert survivors.are_there()
    del loss
    assert not survivors.are_there()


@contextmanager
def another_thread() -> Iterator[None]:
    """Let a thread of the program wait meanwhile."""
    has_ended = Event()
    thread = Thread(target=has_ended.wait)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def test_a_gradient_that_another_thread_may_drop_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those below the call that starts are read while other threads run, since a read can free them twice."""
    mine, other = (torch.randn(3, requires_grad=True) for _ in range(2))
    threads = Recorder().others

    def gradients_of() -> list[torch.Tensor]:
        losses = [(one**3).sum() for one in (mine, other)]
        for one, loss in zip((mine, other), losses, strict=True):
            (one.grad,) = torch.autograd.grad(loss, one, create_graph=True)
        live = LiveGraph(losses, threads, losses[:1])
        found = list(live.gradients)
        live.close()
        return found

    with monkeypatch.context() as patched:  # a worker of the tests has threads of its own
        patched.setattr(threads, "are_running", lambda: False)
        found = gradients_of()
        assert {id(one) for one in found} == {id(mine.grad), id(other.grad)}
    with another_thread():
        found = gradients_of()
        assert [id(one) for one in found] == [id(mine.grad)]
