"""The record of one autograd graph.

Plain frozen structs. `Graph` is the only thing passed between recording, analysis, storage and rendering. It contains
no torch object, no address, no time and no absolute path, so the same program gives the same record on every run, and a
record can be read where torch is not installed. The only exception is `NodeGradients.seconds`.

NOTE [Topological ids]
A node's id is its index in `Graph.nodes`, and every edge points to a larger id. Ids are in reverse order of creation
(the last forward op is node 0), with AccumulateGrad nodes last. So one pass over the ids visits every node before the
nodes its gradients flow to, and a record cannot contain a cycle: `storage` checks this on reading.
"""

from collections import Counter
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from gradinspect.methods import Shown, method

NodeKind: TypeAlias = Literal["generated", "custom", "accumulate_grad", "copy_slices", "compiled", "opaque"]
SavedKind: TypeAlias = Literal[
    "tensor", "int", "float", "complex", "bool", "str", "none", "tuple",
    "dtype", "layout", "memory_format", "device", "object",
]  # fmt: skip
SavedStatus: TypeAlias = Literal["live", "freed", "modified", "packed", "checkpointed", "unreadable"]
Origin: TypeAlias = Literal["parameter", "buffer", "input", "output", "activation"]
LeafKind: TypeAlias = Literal["parameter", "buffer", "variable"]
HookKind: TypeAlias = Literal["pre", "post", "tensor", "post_accumulate_grad", "retain_grad"]
CallKind: TypeAlias = Literal["backward", "grad"]
CaptureKind: TypeAlias = Literal["backward", "grad", "end", "call"]
Size: TypeAlias = int | str  # a str is a symbolic size
Scalar: TypeAlias = bool | int | float | str | None
THREAD_SPAN = 2**40  # identities of nodes of one thread


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True,
             forbid_unknown_fields=True, gc=False):  # fmt: skip
    """Base of all records: frozen, keyword-only, and untracked by the garbage collector, since records are acyclic."""


class TensorInfo(Record, frozen=True):
    """A tensor's properties without its values. Shared by all tensors with equal properties."""

    shape: tuple[Size, ...]
    dtype: str  # "float32"
    device: str = "cpu"
    layout: str = "strided"
    subclass: str | None = None  # qualified class name, if it is not a plain torch.Tensor or Parameter
    local_shape: tuple[Size, ...] | None = None  # of a DTensor: what this rank has; `shape` is that of all ranks


class Edge(Record, frozen=True):
    """One entry of `next_functions` that is not None: the next node, and which of its inputs gets the gradient."""

    next_node: int
    input_nr: int = 0


class Hook(Record, frozen=True):
    """A Python hook that torch will run on this node."""

    kind: HookKind
    name: str | None = None  # qualified name of the function; None if unknown


class SavedTensor(Record, frozen=True):
    """A tensor saved for backward: its properties and its storage."""

    info: TensorInfo
    num_bytes: int  # of its elements, not of its whole storage; of a DTensor those on this rank
    storage: int | None = None  # index into Graph.storages; None if it has none (meta, opaque)
    strides: tuple[Size, ...] | None = None  # only if not contiguous
    storage_offset: int = 0  # in elements
    version: int | None = None  # None for inference tensors
    expected_version: int | None = None  # only if status is "modified"
    made_by: int | None = None  # node whose forward output it is, if that node is in the graph


class SavedValue(Record, frozen=True):
    """One saved attribute of a node, or one element of a saved list."""

    name: str  # torch's name: "_saved_self", "saved_tensors"; "ctx.scale" for a user's attribute
    kind: SavedKind
    index: int | None = None  # position, if the attribute is a list of tensors
    value: Scalar | tuple[Scalar, ...] = None  # inf, nan, complex, dtypes and objects as str
    tensor: SavedTensor | None = None  # set if kind is "tensor" and it can be read
    status: SavedStatus | None = None  # only for tensors
    origin: Origin | None = None  # only for live tensors
    origin_name: str | None = None  # "fc.weight", or a variable's name
    packed_as: str | None = None  # type that a pack hook returned: "tuple", "torch.utils.checkpoint._Holder"
    held_storages: tuple[int, ...] = ()  # inside a packed object, a sparse tensor or a wrapper subclass
    unpack_hook: str | None = None  # qualified name
    operator: str | None = None  # that made it, inside a compiled node: "aten.addmm"
    frame: int | None = None  # index into Graph.frames: the line of that operator
    kept_by_eager: bool | None = None  # of a tensor inside a compiled node: whether eager keeps it too; None: not known


class Leaf(Record, frozen=True):
    """The tensor behind an AccumulateGrad node."""

    info: TensorInfo
    kind: LeafKind
    name: str | None = None  # "h.0.attn.weight" or a variable's name
    aliases: tuple[str, ...] = ()  # other names of the same tensor (weight tying)
    storage: int | None = None
    requires_grad: bool = True
    has_grad: bool = False


class Node(Record, frozen=True):
    """One `grad_fn`."""

    name: str  # "MulBackward0"; without "torch::autograd::"
    kind: NodeKind
    sequence_nr: int | None = None  # order of creation, per thread; None for AccumulateGrad, and if it is not known
    forward_outputs: tuple[TensorInfo | None, ...] = ()  # one per gradient that this node can receive
    next_edges: tuple[Edge | None, ...] = ()  # same positions as next_functions, None kept
    saved: tuple[SavedValue, ...] = ()
    leaf: Leaf | None = None
    function: str | None = None  # qualified class name of a custom autograd.Function
    module: int | None = None  # index into Graph.modules
    frame: int | None = None  # index into Graph.frames
    made_by: str | None = None  # class of the node whose backward made this one, with create_graph
    hooks: tuple[Hook, ...] = ()
    flops: int | None = None  # floating point operations of the forward op; None if torch has no formula for it
    backward_flops: int | None = None  # of this node, when backward runs it
    forward: str | None = (
        None  # of an operator inside a compiled node: the function whose gradient it computes, "linear"
    )
    is_recomputed: bool = False  # of such an operator: the forward has computed the same, and did not keep it
    thread: int = 0  # that made it: 0 is the recorded one; what a backward call made on devices has one of its own

    @property
    def identity(self) -> int | None:
        """Identify it among the nodes of one program, by its thread and number; None if either is not known."""
        return None if self.sequence_nr is None else self.thread * THREAD_SPAN + self.sequence_nr


class Storage(Record, frozen=True):
    """The memory behind tensors. Its bytes count once, however many tensors share it."""

    num_bytes: int
    device: str = "cpu"
    origin: Origin | None = None
    name: str | None = None  # parameter, buffer or variable name


class ModuleCall(Record, frozen=True):
    """One call of an nn.Module. A module called twice has two of these."""

    path: str  # "h.3.attn"; "" for the outermost
    class_name: str
    call: int = 1  # 1 for the first call of this module
    parent: int | None = None  # index into Graph.modules of the enclosing call


class Frame(Record, frozen=True):
    """A line of the user's program, and the line that called it."""

    file: str  # relative to the script's folder, or to the installed package's
    line: int
    function: str = ""
    code: str = ""  # the text of the line, stripped
    caller: int | None = None  # index into Graph.frames
    is_library: bool = False  # belongs to an installed package, not to the program itself


class Root(Record, frozen=True):
    """An output tensor where the walk starts."""

    node: int
    output_nr: int = 0
    info: TensorInfo | None = None
    name: str | None = None  # the variable that held it


class CapturePoint(Record, frozen=True):
    """The moment the graph was recorded."""

    kind: CaptureKind
    number: int | None = None  # 1 for the first call of its kind
    other_grads: int = 0  # autograd.grad calls before this one; if there are no others, all its other ones
    is_second_order: bool = False  # the graph that this backward builds, not the one it runs through
    frame: int | None = None  # index into Graph.frames


class GraphBreak(Record, frozen=True):
    """A place where torch.compile ended a graph before its function did."""

    reason: str
    frame: int | None = None  # index into Graph.frames
    count: int = 1
    is_skipped: bool = False  # nothing of its function is compiled: it runs in eager, or fails with fullgraph=True


class Recompile(Record, frozen=True):
    """A function that was compiled again, since what it was compiled for no longer held."""

    function: str
    reason: str  # "tensor 'x' size mismatch at index 0. expected 4, actual 5"
    frame: int | None = None  # index into Graph.frames: where the function begins
    count: int = 1
    gives_up: bool = False  # it was compiled too often: what is new runs in eager


class Compilation(Record, frozen=True):
    """What torch.compile did in this process, up to the moment of recording."""

    num_graphs: int
    breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    is_cut: bool = False  # torch has forgotten earlier recompiles
    uncompiled: tuple[
        str, ...
    ] = ()  # paths of modules that the program compiled without effect: all of their code is torch's

    @property
    def num_breaks(self) -> int:
        """How often a graph ended early."""
        return sum(one.count for one in self.breaks)

    @property
    def num_recompiles(self) -> int:
        """How often a function was compiled again."""
        return sum(one.count for one in self.recompiles if not one.gives_up)


class GradientStats(Record, frozen=True):
    """Statistics of one gradient. Non-finite elements make norm, maximum and mean non-finite."""

    shape: tuple[int, ...]
    dtype: str
    norm: float
    max_abs: float
    mean: float
    num_zeros: int
    num_nonfinite: int
    num_elements: int

    @property
    def zero_share(self) -> float:
        """The share of elements that are exactly zero."""
        return self.num_zeros / self.num_elements if self.num_elements else 0.0

    @property
    def is_finite(self) -> bool:
        """Whether every element is finite."""
        return self.num_nonfinite == 0

    @property
    def is_zero(self) -> bool:
        """Whether it has elements and each is exactly zero; a norm may be 0 for other reasons."""
        return 0 < self.num_elements == self.num_zeros

    @property
    def teaches(self) -> bool:
        """Whether it is finite and not all zero, so that a step changes what it belongs to."""
        return self.num_nonfinite == 0 and self.num_zeros < self.num_elements


# NOTE [Unmeasured is not missing]
# A gradient may arrive, but have no statistics: its elements cannot be read, or its device lacks an operator. Then a
# text says why, in the place of the statistics. None says that there was no gradient.
Measured: TypeAlias = GradientStats | str | None


def stats_of(measured: Measured) -> GradientStats | None:
    """Return the statistics; None of a gradient that is missing, or was not measured."""
    return measured if isinstance(measured, GradientStats) else None


class NodeGradients(Record, frozen=True):
    """One node as executed by backward."""

    node: int
    order: int  # 0 for the first node
    incoming: tuple[Measured, ...]  # one per forward output: NOTE [Unmeasured is not missing]
    outgoing: tuple[Measured, ...] = ()  # one per position of next_edges; empty for a leaf
    seconds: float | None = None  # None: not timed. It differs between runs, so it is not in capture files


class Gradients(Record, frozen=True):
    """The gradients of one backward call through a graph."""

    nodes: tuple[NodeGradients, ...]  # in the order of node ids; only executed nodes
    weight_norms: dict[int, float] = {}  # leaf node -> norm of its tensor
    update_norms: dict[int, float] = {}  # leaf node -> norm of the change made by the optimizer's next step
    loss: float | None = None  # of a scalar root
    notes: tuple[str, ...] = ()  # sentences: which weights and updates were not measured, and why
    at_leaves_only: bool = False  # compiled autograd has run the call: whether other nodes ran is not known


class Fingerprint(Record, frozen=True):
    """What is kept of the elements of one tensor: enough to say whether two tensors differ, and by how much.

    All numbers are those of the finite elements, with 0 for the others.
    """

    norm: float
    mean: float
    low: float
    high: float
    num_nonfinite: int
    digest: str  # of the bytes, in order
    sketch: str  # of the bytes, in any order
    projections: tuple[float, ...] = ()  # on random signs: NOTE [Distance of fingerprints] in `analyses.diff.values`


class NodeValues(Record, frozen=True):
    """The values of one node's forward outputs, and of the gradients that reached it."""

    node: int
    outputs: tuple[Fingerprint | None, ...] = ()  # one per forward output; None if the program never held it
    incoming: tuple[Fingerprint | None, ...] = ()  # one per forward output; None if there was no gradient
    order: int | None = None  # 0 for the first node that backward ran; None: it did not run


class FoundNode(Record, frozen=True, kw_only=True):
    """A node, and what it can be found by."""

    id: int  # its index in Graph.nodes
    name: str  # its class: "AddmmBackward0"
    module: str | None = None  # path of the innermost module call; "model" for the outermost
    line: str | None = None  # "model.py:41"
    held_bytes: int = 0  # held for backward, of storages that no earlier node saves
    outputs: tuple[str, ...] = ()  # of the forward op: "f32[32, 64]"
    leaf: str | None = None  # name of the parameter or variable, of an AccumulateGrad
    statuses: tuple[SavedStatus, ...] = ()  # of its saved tensors
    hooks: tuple[str, ...] = ()  # that torch will run on it: "post: clip"


class Graph(Shown, Record, frozen=True):
    """A recorded autograd graph: frozen, without tensors, the same on every run. The id of a node is its index."""

    source: str  # as given by the user: "train.py", "pkg.mod:build()"
    torch_version: str
    captured_at: CapturePoint
    roots: tuple[Root, ...]
    nodes: tuple[Node, ...]
    storages: tuple[Storage, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    frames: tuple[Frame, ...] = ()
    arguments: dict[str, tuple[str, ...]] = {}  # node name -> forward argument at each position; "tensors*" is a list
    warnings: tuple[str, ...] = ()
    gradients: Gradients | None = None  # if backward was observed
    values: tuple[NodeValues, ...] = ()  # in the order of node ids, if they were fingerprinted
    model_name: str = "model"  # the user's variable with the module whose path is ""
    unreached: tuple[str, ...] = ()  # parameters that require a gradient and are no leaf, of models that have leaves
    compilation: Compilation | None = None  # None: torch.compile was not used, or the record does not show its insides

    def find(
        self,
        name: str | None = None,
        *,
        module: str | None = None,
        min_bytes: int | str | None = None,
        where: str | None = None,
    ) -> tuple[FoundNode, ...]:
        """Find the nodes that meet all criteria, in the order of their ids; possibly none.

        Args:
            name: A class, also as a pattern: `"AddmmBackward0"`, `"*Addmm*"`.
            module: A module's path, also as a pattern: `"h.*.attn"`; with what is inside it.
            min_bytes: The least that a node holds for backward: bytes, or a text such as `"1MiB"`.
            where: A condition: `"bytes>1MiB and module~h.* and status=modified"`.

        Raises:
            GradInspectError: The size or the condition cannot be read.
        """
        found: tuple[FoundNode, ...] = method("find_nodes")(self, name, module=module, min_bytes=min_bytes, where=where)
        return found

    def to_networkx(self) -> Any:  # noqa: ANN401  # may not be installed
        """Make a `networkx.MultiDiGraph`: a node's id and attributes, an edge for each one that is not None.

        Raises:
            GradInspectError: networkx is not installed.
        """
        return method("to_networkx")(self)

    def to_pandas(self) -> Any:  # noqa: ANN401  # as above
        """Make a `pandas.DataFrame` with one row per node: class, module, line, bytes held, shapes.

        Raises:
            GradInspectError: pandas is not installed.
        """
        return method("to_pandas")(self)

    def to_polars(self) -> Any:  # noqa: ANN401  # as above
        """Make a `polars.DataFrame` with the same rows.

        Raises:
            GradInspectError: polars is not installed.
        """
        return method("to_polars")(self)


def module_name(graph: Graph, path: str) -> str:
    """Return what to call a module: its path, or for the outermost the user's variable."""
    return path or graph.model_name


def frame_of(graph: Graph, made: Node | CapturePoint) -> Frame | None:
    """Return the line that made a node, or where a graph was recorded."""
    return None if made.frame is None else graph.frames[made.frame]


def leaf_name(graph: Graph, number: int) -> str:
    """Name a leaf, by its number if it has no name."""
    leaf = graph.nodes[number].leaf
    return (leaf.name if leaf is not None else None) or f"#{number}"


def source_of(graph: Graph, node: Node) -> str | None:
    """Return the line that made a node, as `model.py:41`."""
    frame = frame_of(graph, node)
    return None if frame is None else f"{frame.file}:{frame.line}"


def nodes_named(graph: Graph, beginnings: str | tuple[str, ...]) -> list[int]:
    """List the nodes whose name begins in one of these ways. There are few names, so each is looked at once."""
    names = {name for name in {node.name for node in graph.nodes} if name.startswith(beginnings)}
    return [number for number, node in enumerate(graph.nodes) if node.name in names] if names else []


class Consumer(NamedTuple):
    """A node that leads to another one, and the position in its `next_edges`."""

    node: int
    position: int


def consumers(graph: Graph) -> dict[int, list[Consumer]]:
    """List the consumers of each node, in order; nodes without consumers are left out."""
    found: dict[int, list[Consumer]] = {}
    for number, node in enumerate(graph.nodes):
        for position, edge in enumerate(node.next_edges):
            if edge is not None:
                found.setdefault(edge.next_node, []).append(Consumer(number, position))
    return found


def num_consumers(graph: Graph) -> Counter[int]:
    """Count the edges into each node."""
    return Counter([edge.next_node for node in graph.nodes for edge in node.next_edges if edge is not None])


def own_frame(graph: Graph, frame: int | None) -> Frame | None:
    """Return the program's line that called into a library, given a line inside it; None for other lines."""
    if frame is None or not graph.frames[frame].is_library:
        return None
    caller = graph.frames[frame].caller
    while caller is not None and graph.frames[caller].is_library:
        caller = graph.frames[caller].caller
    return None if caller is None else graph.frames[caller]


def argument_name(graph: Graph, node: Node, position: int) -> str | None:
    """Return the forward argument at one position of `next_edges`.

    A list argument takes all remaining positions: `cat` of three tensors has `tensors[0]` to `tensors[2]`.
    """
    names = graph.arguments.get(node.name)
    if names is None:
        return None
    lists = [index for index, name in enumerate(names) if name.endswith("*")]
    if not lists:
        return names[position] if len(names) == len(node.next_edges) else None
    length, rest = divmod(len(node.next_edges) - (len(names) - len(lists)), len(lists))
    if rest or length < 0:
        return None
    for name in names:
        width = length if name.endswith("*") else 1
        if position < width:
            return f"{name[:-1]}[{position}]" if name.endswith("*") else name
        position -= width
    return None


def with_other_grads(graph: Graph, number: int) -> Graph:
    """Store in a graph how many other autograd.grad() calls could have been recorded."""
    return replace(graph, captured_at=replace(graph.captured_at, other_grads=number))
