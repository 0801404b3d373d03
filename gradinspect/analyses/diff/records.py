"""The result of comparing two graphs: A, from before, and B, from after."""

from typing import Literal, TypeAlias

from msgspec import field

from gradinspect.analyses.structure.call_names import OUTERMOST
from gradinspect.analyses.structure.name_folding import OddOne
from gradinspect.graph import Record, TensorInfo
from gradinspect.methods import Shown

Field: TypeAlias = Literal["operator", "shape", "dtype", "tensor", "saved", "inputs", "hooks", "module", "line"]
RowKind: TypeAlias = Literal["added", "removed", "changed"]
LeafChangeKind: TypeAlias = Literal["gained", "lost", "frozen", "unfrozen", "renamed", "changed"]
ModuleChangeKind: TypeAlias = Literal["added", "removed", "renamed", "moved", "replaced"]
Aspect: TypeAlias = Literal["bytes", "device", "lines", "order", "values"]  # what a comparison may ignore


class Pair(Record, frozen=True):
    """A figure of A and the same of B."""

    before: int
    after: int

    @property
    def change(self) -> int:
        """How much more B has."""
        return self.after - self.before


class Detail(Record, frozen=True):
    """One property of a node that differs, as text; "" if a graph has none."""

    field: Field
    name: str = ""  # "_saved_self", "mat1"
    before: str = ""
    after: str = ""


class ChangedNode(Record, frozen=True):
    """A node that is in both graphs and differs."""

    node_before: int
    node_after: int
    details: tuple[Detail, ...] = ()
    held_bytes: int = 0  # how many more bytes B's node holds: NOTE [Bytes held] in `saved_storages`


class ChangedRow(Record, frozen=True):
    """Nodes that changed alike, in modules that differ by their index only."""

    kind: RowKind
    module: str  # "h.0-3.attn"; "" for the outermost module
    what: str  # "CloneBackward0"; "Block" for a whole module
    is_outside: bool = False  # of all modules
    is_module: bool = False  # all nodes of a module that only one graph has
    details: tuple[Detail, ...] = ()
    count: int = 1  # nodes, or modules
    num_nodes: int = 1
    held_bytes: int = 0
    info: TensorInfo | None = None  # the first output, if all have the same
    nodes_before: tuple[int, ...] = ()
    nodes_after: tuple[int, ...] = ()
    line: str = ""  # of the first node: "model.py:41"
    odd_one: OddOne | None = None  # of the modules, by bytes or else by the elements of what differs


class LeafChange(Record, frozen=True):
    """A leaf that only one graph has, or that differs."""

    kind: LeafChangeKind
    name: str  # in B, if it is there; "a leaf" without a name
    before: str = ""  # what differs: a name, a tensor
    after: str = ""
    info: TensorInfo | None = None


class ModuleChange(Record, frozen=True):
    """A module that only one graph has, or that has another path, order or class in B."""

    kind: ModuleChangeKind
    before: str = ""
    after: str = ""
    class_name: str = ""
    count: int = 1


class Distance(Record, frozen=True):
    """How far two tensors are from each other."""

    absolute: float
    relative: float  # to the larger norm; inf if one is not finite
    is_reordered: bool = False  # the same elements in another order


class ValueDifference(Record, frozen=True):
    """A tensor that differs by more than the tolerance."""

    node_before: int
    node_after: int
    output_nr: int
    distance: Distance
    name: str  # of the operator, or of the parameter
    module: str = ""
    line: str = ""


class ValueDiff(Record, frozen=True):
    """What differs between the values of two graphs."""

    parameters: tuple[ValueDifference, ...] = ()  # those that went into the forward pass
    first_forward: ValueDifference | None = None  # in the order of the forward pass
    first_backward: ValueDifference | None = None  # of incoming gradients, in the order of backward
    num_outputs: int = 0  # that differ
    num_gradients: int = 0
    num_compared: int = 0  # outputs and gradients
    num_rounded: int = 0  # that differ by no more than the tolerance
    largest_rounded: float = 0.0  # relative

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return not (self.parameters or self.num_outputs or self.num_gradients)


class GraphDiff(Shown, Record, frozen=True):
    """What differs between two graphs."""

    nodes: Pair
    edges: Pair
    leaves: Pair
    held_bytes: Pair
    weight_bytes: Pair
    torch_versions: tuple[str, str]
    model_names: tuple[str, str] = (OUTERMOST, OUTERMOST)  # the program's variables with the outermost modules
    added: tuple[int, ...] = ()  # ids in B
    removed: tuple[int, ...] = ()  # ids in A
    changed: tuple[ChangedNode, ...] = ()
    rows: tuple[ChangedRow, ...] = ()  # the same changes, folded
    leaf_changes: tuple[LeafChange, ...] = ()
    module_changes: tuple[ModuleChange, ...] = ()
    values: ValueDiff | None = None  # None: not compared
    is_held_changed: bool = False  # bytes held differ, and are not ignored
    classes: dict[str, Pair] = field(default_factory=dict)  # nodes of each class, where the numbers differ

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        has_equal_values = self.values is None or self.values.is_empty
        return has_equal_values and not (self.rows or self.leaf_changes or self.module_changes or self.is_held_changed)
