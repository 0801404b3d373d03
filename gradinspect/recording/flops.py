"""The floating point operations of a node: of the forward op that made it, and of its backward.

What comes in: what is recorded of a node, whose saved values and forward outputs have all shapes. What goes out: two
counts, by torch's own formulas, which know matrix products, convolutions and attention. Other nodes have no count.

NOTE [What a backward computes]
A node computes a gradient for each input that leads to another node. So the backward of `addmm` is one product for each
matrix that requires a gradient, each as large as the product of the forward op.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from gradinspect.graph import Edge, SavedValue, Scalar, TensorInfo
from gradinspect.torch_api.flops import operator_flops

Shape: TypeAlias = tuple[int, ...]


class Flops(NamedTuple):
    """Counts of one node; None if torch has no formula for its operator."""

    forward: int | None = None
    backward: int | None = None


UNKNOWN: Final = Flops()


def has_flops(name: str) -> bool:
    """Return whether the operations of nodes of this name can be counted."""
    return name in _COUNTS


class FlopTable:
    """Counts for the nodes of one capture; nodes that resemble each other are counted once."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[tuple[object, ...], tuple[Flops, object]] = {}

    def of_node(
        self,
        name: str,
        forward_outputs: Sequence[TensorInfo | None],
        saved: Sequence[SavedValue],
        next_edges: Sequence[Edge | None],
    ) -> Flops:
        """Count what a node's forward op took, and what its backward takes."""
        count = _COUNTS.get(name)
        if count is None:
            return UNKNOWN
        shared = [value if value.tensor is None else value.tensor.info for value in saved]  # by nodes that are alike
        key = (name, *map(id, forward_outputs), *map(id, shared), *[edge is None for edge in next_edges])
        known = self._known.get(key)
        if known is None:
            flops = count(_Reader(forward_outputs, saved, next_edges))
            known = self._known[key] = (flops, (forward_outputs, shared))  # held, so that no other one gets its id
        return known[0]


class _Reader:
    """Reads shapes and values from what is recorded of a node."""

    def __init__(
        self,
        forward_outputs: Sequence[TensorInfo | None],
        saved: Sequence[SavedValue],
        next_edges: Sequence[Edge | None],
    ) -> None:
        self._forward_outputs = forward_outputs
        self._saved = {value.name: value for value in saved}
        self._next_edges = next_edges

    @property
    def out(self) -> Shape | None:
        """The shape of the first output."""
        info = self._forward_outputs[0] if self._forward_outputs else None
        return None if info is None else _sizes(info.shape)

    def shape(self, argument: str) -> Shape | None:
        """The shape of an argument, saved as a tensor or as sizes."""
        sizes = self._saved.get(f"_saved_{argument}_sym_sizes")
        if sizes is not None and isinstance(sizes.value, tuple):
            return _sizes(sizes.value)
        tensor = self._saved.get(f"_saved_{argument}", _NOTHING).tensor
        return None if tensor is None else _sizes(tensor.info.shape)

    def value(self, name: str) -> Scalar | tuple[Scalar, ...]:
        return self._saved.get(f"_saved_{name}", _NOTHING).value

    def leads_on(self, position: int) -> bool:
        """Whether a gradient is computed for an input: NOTE [What a backward computes]."""
        edges = self._next_edges
        return position < len(edges) and edges[position] is not None


_NOTHING: Final = SavedValue(name="", kind="none")


def _sizes(shape: Sequence[object]) -> Shape | None:
    """Return the sizes; None if one is symbolic."""
    sizes = tuple(size for size in shape if isinstance(size, int))
    return sizes if len(sizes) == len(shape) else None


def _product(operator: str, first: str, second: str, position: int) -> Callable[[_Reader], Flops]:
    """Count a product of two matrices, or of batches of them, which are neighbors in `next_edges`."""

    def count(node: _Reader) -> Flops:
        left, right = _operands(node.shape(first), node.shape(second), node.out)
        if left is None or right is None:
            return UNKNOWN
        bias = (node.out,) if operator in {"addmm", "baddbmm"} else ()
        forward = operator_flops(operator, *bias, left, right, out=node.out)
        times = node.leads_on(position) + node.leads_on(position + 1)
        return Flops(forward, None if forward is None else times * forward)

    return count


def _operands(left: Shape | None, right: Shape | None, out: Shape | None) -> tuple[Shape | None, Shape | None]:
    """Work out the shape of an operand that is not saved, as its product with the other one is known."""
    if out is None or len(out) < 2:
        return left, right
    if left is None and right is not None and len(right) == len(out):
        left = (*out[:-1], right[-2])
    if right is None and left is not None and len(left) == len(out):
        right = (*out[:-2], left[-1], out[-1])
    return left, right


def _convolution(node: _Reader) -> Flops:
    x, weight, out = node.shape("input"), node.shape("weight"), node.out
    if x is None or weight is None or out is None:
        return UNKNOWN
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    options = [node.value(name) for name in names]
    mask = tuple(node.leads_on(position) for position in range(3))
    return Flops(
        operator_flops("convolution", x, weight, None, *options, out=out),
        operator_flops("convolution_backward", out, x, weight, None, *options, mask, out=(x, weight, None)),
    )


def _attention(operator: str) -> Callable[[_Reader], Flops]:
    def count(node: _Reader) -> Flops:
        shapes = tuple(node.shape(name) for name in ("query", "key", "value"))
        if None in shapes or node.out is None:
            return UNKNOWN
        return Flops(
            operator_flops(operator, *shapes, out=node.out),
            operator_flops(f"{operator}_backward", node.out, *shapes, out=shapes),
        )

    return count


_COUNTS: Final[Mapping[str, Callable[[_Reader], Flops]]] = {
    "MmBackward0": _product("mm", "self", "mat2", 0),
    "AddmmBackward0": _product("addmm", "mat1", "mat2", 1),
    "BmmBackward0": _product("bmm", "self", "mat2", 0),
    "BaddbmmBackward0": _product("baddbmm", "batch1", "batch2", 1),
    "ConvolutionBackward0": _convolution,
    **{
        f"ScaledDotProduct{name}AttentionBackward0": _attention(f"_scaled_dot_product_{name.lower()}_attention")
        for name in ("Flash", "Efficient", "Cudnn")
    },
}
