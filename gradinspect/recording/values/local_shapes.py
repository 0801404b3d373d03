"""The local shapes of what nodes made, if it was DTensors.

What comes in: the records of the nodes. What goes out: the same, with the local shapes that saved tensors and leaves
have: the engine itself knows of an output only the shape over all ranks.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gradinspect.graph import Node, TensorInfo


def with_local_shapes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Fill in the local shape of each output that is a leaf, or that a node has saved."""
    known: dict[int, list[TensorInfo]] = {}
    for maker, info in _locals_of(nodes):
        known.setdefault(maker, []).append(info)
    return tuple(
        replace(node, forward_outputs=tuple(_filled(output, known[number]) for output in node.forward_outputs))
        if number in known
        else node
        for number, node in enumerate(nodes)
    )


def _locals_of(nodes: Sequence[Node]) -> Iterator[tuple[int, TensorInfo]]:
    """Yield the node that made each DTensor, and what is recorded of the tensor."""
    for number, node in enumerate(nodes):
        if node.leaf is not None and node.leaf.info.local_shape is not None:
            yield number, node.leaf.info
        for value in node.saved:
            if value.tensor is not None and value.tensor.info.local_shape is not None:
                maker = number if value.origin == "output" else value.tensor.made_by
                if maker is not None:
                    yield maker, value.tensor.info


def _filled(output: TensorInfo | None, known: Sequence[TensorInfo]) -> TensorInfo | None:
    if output is None:
        return None
    alike = {info for info in known if (info.shape, info.dtype) == (output.shape, output.dtype)}
    return alike.pop() if len(alike) == 1 else output
