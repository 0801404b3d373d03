"""Find the tensors with a graph inside a program's output."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from gradinspect.recording.names.variables import Variable
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.tensors import grad_fn_of, is_leaf, plain_tensors_only


class OutputTensor(NamedTuple):
    """A tensor or an edge from which a walk can start."""

    name: str | None
    value: torch.Tensor | GradientEdge

    @property
    def edge(self) -> tuple[Any, int]:
        """Return the node and which of its outputs this is."""
        if isinstance(self.value, torch.Tensor):
            grad_fn = grad_fn_of(self.value)
            if grad_fn is not None:
                return grad_fn, self.value.output_nr
            edge = get_gradient_edge(self.value)
            return edge[0], edge[1]
        return self.value[0], self.value[1]


def outputs_in(value: object, name: str | None = None) -> list[OutputTensor]:
    """List the tensors with a graph inside a tensor, tuple, list, dict, dataclass or ModelOutput.

    Args:
        value: Any container, nested to any depth.
        name: Its name, from which its parts are named: `out.loss`, `out[0]`, `out['logits']`.
    """
    found: dict[int, OutputTensor] = {}
    todo: list[tuple[str | None, object]] = [(name, value)]
    seen: set[int] = set()
    while todo:
        label, item = todo.pop()
        if isinstance(item, GradientEdge):
            found[id(item)] = OutputTensor(label, item)
        elif isinstance(item, torch.Tensor):
            if requires_grad(item) and (is_leaf(item) or grad_fn_of(item) is not None):
                found.setdefault(id(item), OutputTensor(label, item))
        elif id(item) not in seen:
            seen.add(id(item))
            todo.extend(reversed(list(_parts(label, item))))
    return list(found.values())


def has_graph(outputs: Iterable[object]) -> bool:
    """Return whether backward could start from all of these tensors and edges."""
    return all(
        not isinstance(output, torch.Tensor) or (requires_grad(output) and _has_edge(output)) for output in outputs
    )


def _has_edge(tensor: torch.Tensor) -> bool:
    """Return whether a node can be found: not that of an input which a torch.func transform returns as its output."""
    if grad_fn_of(tensor) is not None:
        return True
    try:
        with plain_tensors_only():
            get_gradient_edge(tensor)
    except AttributeError:  # torch looks at a view of it, which has no graph at this level
        return False
    return True


def requires_grad(tensor: torch.Tensor) -> bool:
    """Return a tensor's `requires_grad` without triggering code of a subclass."""
    with plain_tensors_only():
        return bool(tensor.requires_grad)


def final_outputs(variables: Iterable[Variable]) -> list[OutputTensor]:
    """Keep the tensors from which no other of them was computed.

    These are the outputs of a program that does not name any.
    """
    named: dict[int, OutputTensor] = {}
    for name, value in variables:
        if isinstance(value, torch.Tensor) and grad_fn_of(value) is not None:
            named.setdefault(id(value), OutputTensor(name, value))
    candidates = [(output, output.edge[0]) for output in named.values()]
    walk = Walk(node for _, node in candidates)
    try:
        used = {edge.next_node for edges in walk.next_edges for edge in edges if edge is not None}
        return [output for output, node in candidates if walk.numbers[node] not in used]
    finally:
        walk.close()


def _parts(label: str | None, item: object) -> Iterator[tuple[str | None, object]]:
    """Yield the parts of a container with their names."""
    for suffix, value in _suffixed(item):
        yield (None if label is None else f"{label}{suffix}"), value


def _suffixed(item: object) -> list[tuple[str, object]]:
    if isinstance(item, Mapping):
        if hasattr(type(item), "to_tuple"):  # a ModelOutput is read by attribute
            return [(f".{key}", value) for key, value in item.items()]
        return [(f"[{key!r}]", value) for key, value in item.items()]
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return [(f".{field}", value) for field, value in zip(item._fields, item, strict=True)]
    if isinstance(item, list | tuple):
        return [(f"[{index}]", value) for index, value in enumerate(item)]
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return [(f".{field.name}", getattr(item, field.name, None)) for field in dataclasses.fields(item)]
    return []
