"""Small graphs made by hand, so that most tests need no torch."""

from collections.abc import Iterator

from gradinspect.analyses.structure.folding import Scope
from gradinspect.checks.findings import Finding, Place
from gradinspect.graph import (
    CapturePoint,
    Edge,
    Frame,
    Gradients,
    GradientStats,
    Graph,
    Leaf,
    ModuleCall,
    Node,
    NodeGradients,
    Root,
    SavedTensor,
    SavedValue,
    Storage,
    TensorInfo,
)


def tensor_info(*shape: int, dtype: str = "float32") -> TensorInfo:
    """Describe a dense CPU tensor."""
    return TensorInfo(shape=shape, dtype=dtype)


def op(name: str, *next_edges: int | tuple[int, int] | None, shape: tuple[int, ...] = (2, 3), **fields: object) -> Node:
    """Make the node of a forward op; an edge is a node id, `(id, input_nr)` or None."""
    edges = tuple(
        None
        if edge is None
        else Edge(next_node=edge)
        if isinstance(edge, int)
        else Edge(next_node=edge[0], input_nr=edge[1])
        for edge in next_edges
    )
    values: dict[str, object] = {
        "name": name, "kind": "generated", "next_edges": edges, "forward_outputs": (tensor_info(*shape),), **fields,
    }  # fmt: skip
    return Node(**values)  # type: ignore[arg-type]


def leaf(name: str | None, *shape: int, kind: str = "parameter", storage: int | None = None) -> Node:
    """Make an AccumulateGrad node with its leaf."""
    info = tensor_info(*shape)
    tensor = Leaf(info=info, kind=kind, name=name, storage=storage)  # type: ignore[arg-type]
    return Node(name="AccumulateGrad", kind="accumulate_grad", forward_outputs=(info,), leaf=tensor)


def saved(name: str, *shape: int, storage: int, origin: str = "activation", status: str = "live") -> SavedValue:
    """Make a saved f32 tensor."""
    num_bytes = 4
    for size in shape:
        num_bytes *= size
    tensor = SavedTensor(info=tensor_info(*shape), num_bytes=num_bytes, storage=storage, version=0)
    return SavedValue(name=name, kind="tensor", tensor=tensor, status=status, origin=origin)  # type: ignore[arg-type]


def graph(*nodes: Node, roots: tuple[int, ...] = (0,), **fields: object) -> Graph:
    """Put nodes together; the first is the root unless `roots` says otherwise."""
    values: dict[str, object] = {
        "source": "train.py", "torch_version": "2.13.0", "captured_at": CapturePoint(kind="backward", number=1),
        "nodes": nodes,
        "roots": tuple(Root(node=node, info=nodes[node].forward_outputs[0]) for node in roots), **fields,
    }  # fmt: skip
    return Graph(**values)  # type: ignore[arg-type]


def product_plus_two() -> Graph:
    """`b = a * (a + 2)`: a leaf used twice, a None edge, two saved tensors, one of them a leaf."""
    return graph(
        op("MulBackward0", 2, 1, shape=(1,), sequence_nr=1, saved=(
            saved("_saved_other", 1, storage=1), saved("_saved_self", 1, storage=0, origin="input"),
        )),
        op("AddBackward0", 2, None, shape=(1,), sequence_nr=0, saved=(
            SavedValue(name="_saved_alpha", kind="int", value=1),
        )),
        leaf("a", 1, kind="variable", storage=0),
        storages=(Storage(num_bytes=4, origin="input", name="a"), Storage(num_bytes=4, origin="activation")),
        arguments={"MulBackward0": ("self", "other"), "AddBackward0": ("self", "other")},
    )  # fmt: skip


def gradient_stats(norm: float, *, zeros: int = 0, bad: int = 0) -> GradientStats:
    """Make the numbers of a gradient of ten elements."""
    return GradientStats(
        shape=(10,), dtype="float32", norm=norm, max_abs=norm, mean=0.0, num_zeros=zeros if norm else 10,
        num_nonfinite=bad,
        num_elements=10,
    )  # fmt: skip


def gradient_through(name: str, came: GradientStats, went: GradientStats, *, detour: bool = False) -> Graph:
    """Sum, the node in question (train.py:7), a weight behind it, and perhaps another way to that weight."""
    ran = (
        NodeGradients(node=0, order=0, incoming=(gradient_stats(1.0),), outgoing=(came, None)),
        NodeGradients(node=1, order=1, incoming=(came,), outgoing=(went,)),
        NodeGradients(node=2, order=2, incoming=(went,)),
    )
    return graph(
        op("AddBackward0", 1, 2 if detour else None),
        op(name, 2, frame=0),
        leaf("weight", 4),
        frames=(Frame(file="train.py", line=7, code="p = f(h)"),),
        gradients=Gradients(nodes=ran),
    )


def two_layers() -> Graph:
    """A perceptron with its module calls, source lines and bytes."""
    calls = [("", "Sequential", None), ("2", "Linear", 0), ("1", "ReLU", 0), ("0", "Linear", 0)]
    first, second = Frame(file="train.py", line=8), Frame(file="src/model.py", line=21)
    return graph(
        op("NllLossBackward0", 1, None, shape=(), frame=0),
        op("AddmmBackward0", 6, 3, 2, shape=(4, 3), module=1, frame=1, saved=(saved("_saved_mat1", 4, 20, storage=0),)),
        op("TBackward0", 7, shape=(20, 3), module=1, frame=1),
        op("ReluBackward0", 4, shape=(4, 20), module=2, frame=1, saved=(saved("_saved_result", 4, 20, storage=0),)),
        op(
            "AddmmBackward0", 8, None, 5, shape=(4, 20), module=3, frame=1,
            saved=(saved("_saved_mat1", 4, 10, storage=1),),
        ),
        op("TBackward0", 9, shape=(10, 20), module=3, frame=1),
        leaf("2.bias", 3), leaf("2.weight", 3, 20), leaf("0.bias", 20), leaf("0.weight", 20, 10),
        storages=(Storage(num_bytes=320), Storage(num_bytes=160)),
        modules=tuple(ModuleCall(path=path, class_name=name, parent=parent) for path, name, parent in calls),
        frames=(first, second),
        arguments={"AddmmBackward0": ("self", "mat1", "mat2"), "NllLossBackward0": ("self", "weight")},
    )  # fmt: skip


def residual_blocks(count: int) -> Graph:
    """Equal blocks, each `x + exp(x * weight)`."""
    nodes = [
        node
        for first in range(0, 3 * count, 3)
        for node in (
            op("AddBackward0", first + 3, first + 1, module=1 + first // 3),
            op("ExpBackward0", first + 2, module=1 + first // 3),
            op("MulBackward0", first + 3, 3 * count + 1, module=1 + first // 3),
        )
    ]
    calls = (ModuleCall(path=f"h.{count - 1 - place}", class_name="Block", parent=0) for place in range(count))
    return graph(
        *nodes, op("EmbeddingBackward0", 3 * count + 1, module=0), leaf("shared", 3),
        modules=(ModuleCall(path="", class_name="Net"), *calls),
        arguments={"AddBackward0": ("self", "other"), "MulBackward0": ("self", "other")},
    )  # fmt: skip


def make_finding(code: str, *lines: int) -> Finding:
    """Make a finding that names lines of `train.py`."""
    places = tuple(Place(role="saved", file="train.py", line=line, code=f"line {line}") for line in lines)
    return Finding(code=code, title="a mistake", text="It is wrong.", places=places, remedy="Mend it.")


def walk_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and all scopes in it, including copies, outer ones first."""
    waiting = [scope]
    while waiting:
        current = waiting.pop()
        yield current
        for items in (current.items, *current.copies):
            waiting.extend(item for item in items if isinstance(item, Scope))
