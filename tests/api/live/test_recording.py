"""`record` around any code: what is seen, and that nothing is changed."""

import gc
import os
import weakref
from contextlib import suppress

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode

import gradinspect as gi


def gradients(net: nn.Module, *, is_recorded: bool) -> list[torch.Tensor]:
    """Run two steps, and return the gradients of the last one."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        if is_recorded:
            with gi.record(net):
                net(torch.ones(3, 4)).square().mean().backward()
        else:
            net(torch.ones(3, 4)).square().mean().backward()
        optimizer.step()
    return [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]


def made() -> nn.Module:
    """Make the same small model each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def test_gradients_are_bit_equal() -> None:
    """With a recording and without."""
    plain, recorded = gradients(made(), is_recorded=False), gradients(made(), is_recorded=True)

    assert all(torch.equal(one, other) for one, other in zip(plain, recorded, strict=True))
    assert len(plain) == 4


def test_each_backward_has_its_graph_with_modules_and_lines() -> None:
    """In order; `graph` is the first backward(), even if autograd.grad() came before it."""
    net, x = made(), torch.ones(3, 4, requires_grad=True)
    with gi.record(net) as recording:
        torch.autograd.grad(net(x).sum(), x)
        for _ in range(2):
            net(x).square().mean().backward()
    kinds = [(graph.captured_at.kind, graph.captured_at.number) for graph in recording.graphs]
    (found,) = recording.graph.find("AddmmBackward0", module="2")

    assert kinds == [("grad", 1), ("backward", 1), ("backward", 2)]
    assert recording.graph.captured_at.kind == "backward"
    assert found.line is not None
    assert found.line.startswith(recording.graph.source)
    assert recording.graph.model_name == "net"


def test_a_loss_made_inside_can_be_captured_outside() -> None:
    """With its modules and lines."""
    net = made()
    with gi.record() as recording:
        loss = net(torch.ones(3, 4)).sum()
    graph = recording.capture(loss)

    assert {call.path for call in graph.modules} == {"", "0", "1", "2"}
    assert all(node.frame is not None for node in graph.nodes if node.kind != "accumulate_grad")


def test_nothing_stays_patched_or_alive() -> None:
    """Neither a mode nor the engine's wrapper nor a hook; the model and the loss can be freed. Also after an error."""
    engine = torch.autograd.graph._engine_run_backward
    forward = nn.modules.module._global_forward_hooks.copy()
    net = made()
    recording = gi.record(net)
    with suppress(ZeroDivisionError), recording:
        net(torch.ones(3, 4)).sum().backward()
        raise ZeroDivisionError
    gone = weakref.ref(net)
    del net
    gc.collect()

    assert torch.autograd.graph._engine_run_backward is engine
    assert nn.modules.module._global_forward_hooks == forward
    assert _get_current_function_mode() is None
    assert gone() is None
    assert len(recording.graphs) == 1


def test_what_a_block_has_seen_can_be_swapped() -> None:
    """Inputs and parameters, in the block and after it while the recording is alive; torch refuses weak references."""
    net, x = made(), torch.ones(3, 4)
    with gi.record(net) as recording:
        net(x).sum().backward()
        net.zero_grad()
        torch.utils.swap_tensors(x, torch.zeros(3, 4))
        loss = net(x).sum()
    graph = recording.capture(loss)
    del loss
    for tensor in (x, *net.parameters()):
        torch.utils.swap_tensors(tensor, nn.Parameter(torch.zeros_like(tensor)))

    assert net(x).tolist() == [[0.0]] * 3
    assert {leaf.origin for leaf in graph.storages} >= {"parameter", "input"}


@pytest.mark.slow
def test_many_blocks_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function that runs after each fork, and no object."""
    registered: list[object] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **handlers: registered.append(handlers))
    counts = []
    for _ in range(3):
        for _ in range(20):
            with gi.record():
                pass
        gc.collect()
        counts.append(len(gc.get_objects()))

    assert registered == []
    assert counts[1] == counts[2]


def test_as_many_graphs_are_kept_as_asked() -> None:
    """Later calls run as they are."""
    net = made()
    with gi.record(net, most=1) as recording:
        for _ in range(3):
            net(torch.ones(3, 4)).sum().backward()

    assert [graph.captured_at.number for graph in recording.graphs] == [1]
    assert repr(recording) == "<Recording of 1 graph>"


def test_errors_say_what_to_do() -> None:
    """Nothing was run backward; a recording is used twice."""
    recording = gi.record()
    with recording:
        torch.ones(2)

    with pytest.raises(gi.GradInspectError, match=r"Call backward\(\) inside the with block"):
        _ = recording.graph
    with pytest.raises(gi.GradInspectError, match="used before"), recording:
        pass
