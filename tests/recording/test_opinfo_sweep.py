"""Every differentiable op of torch's own test samples is recorded, with every attribute that its nodes save.

The witness is the live node itself: after the capture each `_saved_*` is read the plain way and compared.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from operator_sweep import modules, operators

from gradinspect.graph import Node, SavedValue
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.outputs import outputs_in

DTYPES = (torch.float32, torch.complex64)


def live_nodes(outputs: object) -> list[Any]:
    """Walk the live graph on its own, to be compared with the record."""
    todo = [output.edge[0] for output in outputs_in(outputs)]
    found = dict.fromkeys(todo)
    while todo:
        for next_node, _ in todo.pop().next_functions:
            if next_node is not None and next_node not in found:
                found[next_node] = None
                todo.append(next_node)
    return list(found)


def key_of(node: Any) -> tuple[str, int]:
    """Identify a node in a graph that one thread made."""
    return node.name().removeprefix("torch::autograd::"), node._sequence_nr()


def expected_kind(value: object) -> str:
    """Name the kind of a saved value as the record does."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (tuple, list)):
        return "tuple"
    names = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format", torch.device: "device"}
    return "none" if value is None else names.get(type(value), type(value).__name__)


def same_value(saved: SavedValue, value: Any) -> bool:
    """Compare a recorded plain value with the live one."""
    if isinstance(value, (tuple, list)):
        return isinstance(saved.value, tuple) and len(saved.value) == len(value)
    if isinstance(value, float) and not math.isfinite(value):
        return saved.value == str(value)
    if isinstance(value, int) and value >= 2**63:
        return saved.value == value - 2**64
    if isinstance(value, (bool, int, float, str)) or value is None:
        return saved.value == value
    return saved.value == str(value).removeprefix("torch.")


def check_tensor(saved: SavedValue, tensor: torch.Tensor) -> None:
    """Compare what is said of a tensor with the tensor."""
    assert saved.kind == "tensor"
    assert saved.status == "live"
    assert saved.tensor is not None
    assert saved.tensor.info.shape == tuple(tensor.shape)
    assert saved.tensor.info.dtype == str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is torch.strided:
        assert saved.tensor.num_bytes == tensor.numel() * tensor.element_size()
        assert saved.tensor.storage is not None or saved.held_storages


def check_node(record: Node, node: Any) -> int:
    """Compare every saved attribute of one node; return how many there were."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    recorded: dict[str, list[SavedValue]] = {}
    for saved in record.saved:
        recorded.setdefault(saved.name, []).append(saved)
    assert set(names) <= set(recorded), (record.name, names)
    for name in names:
        value = getattr(node, name)
        values = recorded[name]
        if isinstance(value, (tuple, list)) and values[0].index is not None:
            assert len(values) == len(value)
            for saved, item in zip(values, value, strict=True):
                if isinstance(item, torch.Tensor):
                    check_tensor(saved, item)
        elif isinstance(value, torch.Tensor):
            check_tensor(values[0], value)
        else:
            assert values[0].kind == expected_kind(value), (record.name, name, value)
            assert same_value(values[0], value), (record.name, name, value, values[0])
    return len(names)


def check_outputs(outputs: object) -> int:
    """Capture a result and compare all of it; return how many attributes were compared."""
    if not outputs_in(outputs):
        return 0
    counter = torch._C._autograd._get_sequence_nr()
    graph = capture_graph(outputs)
    if all(graph.nodes[root.node].leaf is None for root in graph.roots):  # torch makes a view to find a leaf's node
        assert torch._C._autograd._get_sequence_nr() == counter  # no node was added
    nodes = live_nodes(outputs)
    assert len(graph.nodes) == len(nodes)
    records = {(record.name, record.sequence_nr): record for record in graph.nodes if record.sequence_nr is not None}
    made = [node for node in nodes if key_of(node) in records]
    assert len(made) == len(records)
    assert not [saved for record in graph.nodes for saved in record.saved if saved.status == "unreadable"]
    return sum(check_node(records[key_of(node)], node) for node in made)


def op_outputs(op: Any, dtype: torch.dtype, limit: int | None) -> Iterator[object]:
    """Run an op on its samples."""
    if dtype not in op.supported_backward_dtypes("cpu"):
        return
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
        if number == limit:
            return
        try:
            yield op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ModuleNotFoundError):
            continue  # a sample that this build of torch cannot run


def sweep(ops: list[Any], limit: int | None) -> int:
    """Check the samples of some ops; return how many attributes were compared."""
    total = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in ops:
            for dtype in DTYPES:
                for outputs in op_outputs(op, dtype, limit):
                    total += check_outputs(outputs)
    return total


@pytest.mark.slow
def test_a_twelfth_of_all_ops() -> None:
    """Every twelfth op, its first two samples, real and complex."""
    assert sweep(operators()[::12], 2) > 250


@pytest.mark.sweep
def test_all_ops() -> None:
    """Every op, every sample, real and complex."""
    assert sweep(operators(), None) > 20_000


def module_outputs(info: Any, limit: int | None) -> Iterator[object]:
    """Run a module of torch's own list on its samples."""
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=True)
    for number, sample in enumerate(inputs):
        if number == limit:
            return
        try:
            construct, forward = sample.constructor_input, sample.forward_input
            module = info.module_cls(*construct.args, **construct.kwargs)
            yield module(*forward.args, **forward.kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
            continue  # a sample that needs another device or torch


@pytest.mark.parametrize(
    ("limit", "part"),
    [
        pytest.param(1, slice(0, None, 4), marks=pytest.mark.slow),
        pytest.param(None, slice(None), marks=pytest.mark.sweep),
    ],
)
def test_modules(limit: int | None, part: slice) -> None:
    """The modules of torch's own list: every fourth one once, or all with all samples."""
    total = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in modules()[part]:
            for outputs in module_outputs(info, limit):
                total += check_outputs(outputs)

    assert total > 40
