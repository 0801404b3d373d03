"""A second witness for saved attributes: each `_saved_*` read from the live node, after the record was made.

Node records and live nodes are brought together by walking both along their edges, so that the edges are compared too.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gradinspect.graph import Graph, Node, SavedValue
from gradinspect.recording.capture import capture_graph

_NO_TENSOR_KINDS = {
    type(None): "none",
    bool: "bool",
    int: "int",
    float: "float",
    complex: "complex",
    str: "str",
    tuple: "tuple",
    list: "tuple",
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
    torch.device: "device",
}


class SavedWitness:
    """Compares records with the live nodes they are of."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.classes: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    def check(self, outputs: Sequence[torch.Tensor]) -> Graph:
        """Capture the graph of some tensors and compare every attribute of every node."""
        before = torch._C._autograd._get_sequence_nr()
        graph = capture_graph(list(outputs))
        if torch._C._autograd._get_sequence_nr() != before:
            self.wrong.append("the capture made a node")
        pairs = pairs_of(graph, outputs)
        if len(pairs) != len(graph.nodes):
            self.wrong.append(f"{len(graph.nodes)} records, {len(pairs)} nodes")
        for node, live in pairs:
            self.classes[node.name] += 1
            if node.name != live.name().removeprefix("torch::autograd::"):
                self.wrong.append(f"{live.name()} is recorded as {node.name}")
            self.check_edges(node, live)
            self.check_saved(graph, node, live)
        return graph

    def check_edges(self, node: Node, live: Any) -> None:
        """Compare the places, the empty ones too."""
        edges = [None if edge is None else edge.input_nr for edge in node.next_edges]
        if edges != [None if next_live is None else nr for next_live, nr in live.next_functions]:
            self.wrong.append(f"{node.name}: {edges}")

    def check_saved(self, graph: Graph, node: Node, live: Any) -> None:
        """Compare what is in the record with what the node itself says."""
        found = {(saved.name, saved.index): saved for saved in node.saved}
        for name, index, value in saved_attributes(live):
            saved = found.pop((name, index), None)
            difference = "is not in the record" if saved is None else difference_of(graph, saved, value)
            self.kinds["" if saved is None else saved.kind] += 1
            if difference:
                self.wrong.append(f"{node.name}.{name}[{index}]: {difference}")
        surplus = [key for key in found if key[0].startswith("_saved_")]
        if surplus:
            self.wrong.append(f"{node.name} has no {surplus}")


def pairs_of(graph: Graph, outputs: Sequence[torch.Tensor]) -> list[tuple[Node, Any]]:
    """Bring records and live nodes together, from the roots along the edges."""
    todo = [(root.node, torch.autograd.graph.get_gradient_edge(output)[0])
            for root, output in zip(graph.roots, outputs, strict=True)]  # fmt: skip
    live_of: dict[int, Any] = {}
    while todo:
        number, live = todo.pop()
        if number in live_of:
            assert live_of[number] is live
            continue
        live_of[number] = live
        edges = graph.nodes[number].next_edges
        for edge, (next_live, _) in zip(edges, live.next_functions, strict=True):
            assert (edge is None) == (next_live is None)
            if edge is not None:
                todo.append((edge.next_node, next_live))
    return [(graph.nodes[number], live) for number, live in live_of.items()]


def saved_attributes(live: Any) -> Iterator[tuple[str, int | None, object]]:
    """Read every `_saved_*` of a node as a user would, lists of tensors element by element."""
    for name in dir(live):
        if not name.startswith("_saved_"):
            continue
        value = getattr(live, name)
        if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
            for index, item in enumerate(value):
                yield name, index, item
        else:
            yield name, None, value


def difference_of(graph: Graph, saved: SavedValue, value: object) -> str | None:
    """Say how a record differs from the value it is of; None when it does not."""
    if isinstance(value, torch.Tensor):
        return _difference_of_tensor(graph, saved, value)
    kind = _NO_TENSOR_KINDS[type(value)]
    if saved.kind != kind:
        return f"kind {saved.kind} for {value!r}"
    if saved.value != _plain(value) or saved.status is not None or saved.tensor is not None:
        return f"{saved} for {value!r}"
    return None


def _difference_of_tensor(graph: Graph, saved: SavedValue, value: torch.Tensor) -> str | None:
    tensor = saved.tensor
    if saved.kind != "tensor" or saved.status != "live" or tensor is None:
        return f"{saved.kind} {saved.status} for a tensor"
    looks = (tensor.info.shape, tensor.info.dtype, tensor.info.device, tensor.info.layout, tensor.num_bytes)
    expected = (
        tuple(value.shape),
        str(value.dtype).removeprefix("torch."),
        str(value.device),
        str(value.layout).removeprefix("torch."),
        value.numel() * value.element_size(),
    )
    if looks != expected:
        return f"{looks} for {expected}"
    if value.layout is torch.strided:
        storage = None if tensor.storage is None else graph.storages[tensor.storage].num_bytes
        memory = (tensor.strides or value.contiguous().stride(), tensor.storage_offset, tensor.version, storage)
        strides = value.contiguous().stride() if value.is_contiguous() else value.stride()
        real = (strides, value.storage_offset(), value._version, value.untyped_storage().nbytes())
        return None if memory == real else f"{memory} for {real}"
    return None if saved.held_storages else "a sparse tensor without storages"


def _plain(value: Any) -> Any:
    """Spell a value as a record must: finite numbers as they are, all else as text, unsigned -1 as -1."""
    if isinstance(value, list | tuple):
        return tuple(f"({', '.join(str(_plain(part)) for part in item)})" if isinstance(item, list | tuple)
                     else _plain(item) for item in value)  # fmt: skip
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value - 2**64 if value >= 2**63 else value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value).removeprefix("torch.")
