"""A second witness for what is recorded: the dispatcher's view of each op, below autograd."""

import functools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from factories import graph, op
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gradinspect.catalog import load_catalog
from gradinspect.graph import argument_name


def names_of_places(node: Any) -> list[str | None]:
    """Name each place of a live node as a record of it would."""
    return names_of(node.name(), len(node.next_functions))


@functools.cache
def names_of(name: str, num_places: int) -> list[str | None]:
    """Name so many places of a class."""
    record = graph(op(name, *[None] * num_places), arguments={name: load_catalog().entries[name].arguments})
    return [argument_name(record, record.nodes[0], position) for position in range(num_places)]


def nodes_below(roots: Iterable[Any]) -> list[Any]:
    """Collect the live nodes that roots lead to."""
    todo = [root for root in roots if root is not None]
    seen: dict[Any, None] = {}
    while todo:
        node = todo.pop()
        if node not in seen:
            seen[node] = None
            todo.extend(next_node for next_node, _ in node.next_functions if next_node is not None)
    return list(seen)


class Call(NamedTuple):
    """One op as the dispatcher saw it, below autograd."""

    op: str
    arguments: dict[str, torch.Tensor | None]
    edges: dict[str, tuple[Any, int] | None]  # where the gradient of each argument goes; a leaf stands for its node
    results: list[torch.Tensor]


class Witness(TorchDispatchMode):
    """Writes down the arguments of each op by the names of the schema that runs.

    An autograd kernel makes its node and then calls on, so the call comes when the sequence number is one past the
    node's; two past it when the kernel clones first what it is about to change in place.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, list[Call]] = defaultdict(list)
        self.resolved: dict[torch.Tensor, torch.Tensor] = {}  # what a lazy conj or neg became, and what it was

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the op and keep what went in and came out."""
        kwargs = kwargs or {}
        number = torch._C._autograd._get_sequence_nr()
        arguments: dict[str, Any] = {}
        for position, argument in enumerate(func._schema.arguments):
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            if isinstance(value, list | tuple):
                arguments.update((f"{argument.name}[{index}]", item) for index, item in enumerate(value))
            else:
                arguments[argument.name] = value
        for name, value in arguments.items():
            arguments[name] = self.resolved.get(value, value) if isinstance(value, torch.Tensor) else None
        edges = {name: gradient_edge(value) for name, value in arguments.items()}
        results = func(*args, **kwargs)
        if func is torch.ops.aten.clone.default and (args[0].is_conj() or args[0].is_neg()):
            self.resolved[results] = args[0]  # below autograd, so the result knows nothing of its origin
        tensors = [result for result in tree_leaves(results) if isinstance(result, torch.Tensor)]
        self.calls[number].append(Call(func._schema.name, arguments, edges, tensors))
        return results

    def call_of(self, node: Any) -> Call | None:
        """Find the call that a node was made for."""
        wanted = load_catalog().entries[node.name()].signature.partition("(")[0].partition(".")[0].rstrip("_")
        number = node._sequence_nr()
        calls = (*self.calls[number + 1], *self.calls[number + 2])
        return next((call for call in calls if call.op.removeprefix("aten::").rstrip("_") == wanted), None)


def gradient_edge(value: object) -> tuple[Any, int] | None:
    """Return where the gradient of an argument goes."""
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return None
    return (value, 0) if value.grad_fn is None else (value.grad_fn, value.output_nr)
