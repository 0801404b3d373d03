"""The record of one autograd graph.

What comes in: nothing; these are plain frozen structs. What goes out: `Graph`, the only thing that travels between
recording, analysing, saving and rendering. It holds no torch object, no address, no time and no absolute path, so the
same program gives the same record on every run, and a record can be read where torch is not installed. The seconds of
`NodeGradients` are the one exception.

NOTE [Topological ids]
A node's id is its index in `Graph.nodes`, and every edge points to a larger id. Ids follow the order of creation
backwards (the last forward op is node 0), AccumulateGrad nodes come last. So one pass over the ids visits every node
before the nodes its gradients flow to, and a record cannot hold a cycle: `storage` checks it on reading.
"""

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

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


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: frozen, keyword-only, invisible to the garbage collector (a record holds no cycle)."""


class TensorInfo(Record, frozen=True):
    """What a tensor looks like, without its values. Shared by all tensors that look alike."""

    shape: tuple[Size, ...]
    dtype: str  # "float32"
    device: str = "cpu"
    layout: str = "strided"
    subclass: str | None = None  # qualified class name when it is not a plain torch.Tensor or Parameter


class Edge(Record, frozen=True):
    """One filled place of `next_functions`: where a gradient goes next, and into which of its inputs."""

    next_node: int
    input_nr: int = 0


class Hook(Record, frozen=True):
    """A Python hook that torch will run on this node."""

    kind: HookKind
    name: str | None = None  # qualified name of the function; None when torch does not tell


class SavedTensor(Record, frozen=True):
    """A tensor kept for backward: its looks and where its bytes are."""

    info: TensorInfo
    num_bytes: int  # of the elements it shows, not of the storage behind it
    storage: int | None = None  # index into Graph.storages; None when it has none (meta, opaque)
    strides: tuple[Size, ...] | None = None  # only when not contiguous
    storage_offset: int = 0  # in elements
    version: int | None = None  # None for inference tensors
    expected_version: int | None = None  # only when status is "modified"
    made_by: int | None = None  # node whose forward output it is, when the walk met that node


class SavedValue(Record, frozen=True):
    """One saved attribute of a node, or one element of a saved list."""

    name: str  # as torch spells it: "_saved_self", "saved_tensors"; "ctx.scale" for a user's own attribute
    kind: SavedKind
    index: int | None = None  # position, when the attribute is a list of tensors
    value: Scalar | tuple[Scalar, ...] = None  # inf, nan, complex, dtypes and objects as str
    tensor: SavedTensor | None = None  # set when kind is "tensor" and it can be read
    status: SavedStatus | None = None  # of tensors only
    origin: Origin | None = None  # of live tensors only
    origin_name: str | None = None  # "fc.weight", or a variable's name
    packed_as: str | None = None  # what a pack hook left in its place: "tuple", "torch.utils.checkpoint._Holder"
    held_storages: tuple[int, ...] = ()  # what a packed object, a sparse tensor or a wrapper subclass holds inside
    unpack_hook: str | None = None  # qualified name


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
    sequence_nr: int | None = None  # order of creation in its thread; None for AccumulateGrad
    forward_outputs: tuple[TensorInfo | None, ...] = ()  # one for each gradient this node can receive
    next_edges: tuple[Edge | None, ...] = ()  # positions and empty places as in next_functions
    saved: tuple[SavedValue, ...] = ()
    leaf: Leaf | None = None
    function: str | None = None  # qualified class name of a custom autograd.Function
    module: int | None = None  # index into Graph.modules
    frame: int | None = None  # index into Graph.frames
    made_by: str | None = None  # class of the node whose backward made this one, under create_graph
    hooks: tuple[Hook, ...] = ()


class Storage(Record, frozen=True):
    """The memory behind tensors. Its bytes count once, however many tensors show it."""

    num_bytes: int
    device: str = "cpu"
    origin: Origin | None = None
    name: str | None = None  # parameter, buffer or variable name


class ModuleCall(Record, frozen=True):
    """One call of one nn.Module. A module called twice has two of these."""

    path: str  # "h.3.attn"; "" for the outermost
    class_name: str
    call: int = 1  # 1 for the first call of this module
    parent: int | None = None  # index into Graph.modules of the call it happened in


class Frame(Record, frozen=True):
    """A line of the user's program, with the line that called it."""

    file: str  # relative to the script's folder, or to the installed package's
    line: int
    function: str = ""
    code: str = ""  # the text of the line, stripped
    caller: int | None = None  # index into Graph.frames
    is_library: bool = False  # it belongs to an installed package, not to the program itself


class Root(Record, frozen=True):
    """Where the walk started: an output tensor."""

    node: int
    output_nr: int = 0
    info: TensorInfo | None = None
    name: str | None = None  # the variable that held it


class CapturePoint(Record, frozen=True):
    """The moment the graph was recorded."""

    kind: CaptureKind
    number: int | None = None  # 1 for the first call of its kind
    other_grads: int = 0  # autograd.grad calls before this moment; of a program that calls nothing else, all its others
    is_second_order: bool = False  # the graph that this backward builds, not the one it goes through
    frame: int | None = None  # index into Graph.frames


class GradientStats(Record, frozen=True):
    """One gradient, in numbers. What is not finite makes norm, largest value and mean not finite."""

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
        """Share of the elements that are exactly zero."""
        return self.num_zeros / self.num_elements if self.num_elements else 0.0

    @property
    def is_finite(self) -> bool:
        """Whether every element is."""
        return self.num_nonfinite == 0


class NodeGradients(Record, frozen=True):
    """One node as backward ran it."""

    node: int
    order: int  # 0 for the first that ran
    incoming: tuple[GradientStats | None, ...]  # one for each forward output; None where none came
    outgoing: tuple[GradientStats | None, ...] = ()  # one for each place of next_edges; none of a leaf
    seconds: float = 0.0  # of this run only, so a capture file does not hold it


class Gradients(Record, frozen=True):
    """What flowed back through a graph in one backward call."""

    nodes: tuple[NodeGradients, ...]  # in the order of node ids; only those that ran
    weight_norms: dict[int, float] = {}  # leaf node -> norm of its tensor
    update_norms: dict[int, float] = {}  # leaf node -> norm of what the optimizer's next step changed in it
    loss: float | None = None  # of a scalar root


class Graph(Record, frozen=True):
    """A recorded autograd graph. Read it with the functions in `analyses`; nothing here computes."""

    source: str  # as the user named it: "train.py", "pkg.mod:build()"
    torch_version: str
    captured_at: CapturePoint
    roots: tuple[Root, ...]
    nodes: tuple[Node, ...]
    storages: tuple[Storage, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    frames: tuple[Frame, ...] = ()
    arguments: dict[str, tuple[str, ...]] = {}  # node name -> forward argument at each position; "tensors*" is a list
    warnings: tuple[str, ...] = ()
    gradients: Gradients | None = None  # when backward was let run, and watched


def frame_of(graph: Graph, made: Node | CapturePoint) -> Frame | None:
    """Return the line that made a node, or at which a graph was recorded."""
    return None if made.frame is None else graph.frames[made.frame]


def source_of(graph: Graph, node: Node) -> str | None:
    """Return the line that made a node, as `model.py:41`."""
    frame = frame_of(graph, node)
    return None if frame is None else f"{frame.file}:{frame.line}"


class Consumer(NamedTuple):
    """A node that leads to another one, and the place in its `next_edges` that does."""

    node: int
    position: int


def consumers(graph: Graph) -> dict[int, list[Consumer]]:
    """List for each node those that lead to it, in their order; a node that none leads to is left out."""
    found: dict[int, list[Consumer]] = {}
    for number, node in enumerate(graph.nodes):
        for position, edge in enumerate(node.next_edges):
            if edge is not None:
                found.setdefault(edge.next_node, []).append(Consumer(number, position))
    return found


def num_consumers(graph: Graph) -> Counter[int]:
    """Count for each node the edges that lead to it."""
    return Counter(edge.next_node for node in graph.nodes for edge in node.next_edges if edge is not None)


def own_frame(graph: Graph, frame: int | None) -> Frame | None:
    """Return the line of the program itself that called a library, from a line inside it; None for any other line."""
    if frame is None or not graph.frames[frame].is_library:
        return None
    caller = graph.frames[frame].caller
    while caller is not None and graph.frames[caller].is_library:
        caller = graph.frames[caller].caller
    return None if caller is None else graph.frames[caller]


def argument_name(graph: Graph, node: Node, position: int) -> str | None:
    """Return the forward argument that belongs to one place of `next_edges`.

    A list argument takes as many places as are left over: `cat` of three tensors has `tensors[0]` to `tensors[2]`.
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
    """Note in a graph how many autograd.grad() calls could have been recorded in place of it."""
    return replace(graph, captured_at=replace(graph.captured_at, other_grads=number))
