"""Make `Node` records of live nodes."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from gradinspect.catalog import Catalog
from gradinspect.graph import THREAD_SPAN, Edge, Hook, Leaf, Node, NodeKind, SavedValue, TensorInfo
from gradinspect.recording.flops import UNKNOWN, FlopTable, has_flops
from gradinspect.recording.hooks import node_hooks, tensor_hooks
from gradinspect.recording.names.names import Names
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.second_order import Maker
from gradinspect.recording.values.saved import SavedNames, SavedReader
from gradinspect.recording.values.storages import StorageTable, has_inner_tensors
from gradinspect.recording.values.tensors import TensorInfoTable
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.nodes import (
    UNKNOWN_NR,
    forward_metadata,
    function_class,
    is_compiled_class,
    is_generated_class,
    is_python_node,
)
from gradinspect.torch_api.saved import python_saved_names, saved_names
from gradinspect.torch_api.tensors import requires_grad_here

_NO_MAKERS: Mapping[int, Maker] = MappingProxyType({})
_KINDS: dict[str, NodeKind] = {"AccumulateGrad": "accumulate_grad", "CopySlices": "copy_slices"}


class NodeClass:
    """The properties shared by all nodes of one Python type."""

    __slots__ = ("function", "has_flops", "is_plain", "kind", "name", "saved")

    def __init__(self, node: Any, catalog: Catalog) -> None:
        """Inspect the type of a live node."""
        kind = type(node)
        entry = catalog.entries.get(kind.__name__)
        self.function: str | None = None
        self.kind: NodeKind
        is_generated = is_generated_class(kind)
        self.name = kind.__name__ if is_generated else None  # for other types, each node has its own name
        self.has_flops = self.name is None or has_flops(self.name)
        self.is_plain = False  # whether nodes have nothing but what torch generates for each
        if is_python_node(node):
            forward_class = function_class(node)
            self.function = f"{forward_class.__module__}.{forward_class.__qualname__}"
            self.kind = "compiled" if is_compiled_class(forward_class) else "custom"
            self.saved = SavedNames((python_saved_names(),), has_context=True)
            return
        self.kind = _KINDS.get(kind.__name__, "generated" if is_generated else "opaque")
        self.is_plain = self.kind == "generated" and not self.has_flops
        tensors, values = saved_names(kind)
        outputs = frozenset(f"_saved_{name}" for name in entry.outputs) if entry is not None else frozenset()
        self.saved = SavedNames(tuple(tensors), tuple(values), outputs)


class _Shared(NamedTuple):
    """What every node has."""

    sequence_nr: int
    next_edges: tuple[Edge | None, ...]
    forward_outputs: tuple[TensorInfo | None, ...]
    saved: tuple[SavedValue, ...]
    module: int | None
    frame: int | None


class NodeRecorder:
    """Makes the records of the nodes of one walk."""

    def __init__(
        self,
        walk: Walk,
        catalog: Catalog,
        names: Names,
        infos: TensorInfoTable,
        *,
        has_hooks: bool,
        recorder: Recorder | None = None,
    ) -> None:
        """Set up the tables that the nodes of one capture share."""
        saved_hooks = None if recorder is None else recorder.saved_hooks
        self.infos = infos
        self.storages = StorageTable(names.storages, names.inputs)
        self._walk = walk
        self._catalog = catalog
        self._names = names
        self._has_hooks = has_hooks
        self._hooks_on_outputs = None if recorder is None else recorder.tensor_hooks.on(recorder.others.maker)
        self._classes: dict[type, NodeClass] = {}
        self._flops = FlopTable()
        self._saved = SavedReader(self.storages, self.infos, walk.numbers, walk.sequence_nrs, saved_hooks)

    def node_class(self, node: Any) -> NodeClass:
        """Return the properties of a node's type."""
        found = self._classes.get(type(node))
        if found is None:
            found = self._classes[type(node)] = NodeClass(node, self._catalog)
        return found

    def records(
        self,
        modules: Sequence[int | None],
        frames: Sequence[int | None],
        makers: Mapping[int, Maker] = _NO_MAKERS,
    ) -> list[Node]:
        """Record everything about the nodes that can be read without running them.

        NOTE [A ctx is a node]
        What a custom Function stores on `ctx` becomes attributes of its node, possibly named `name` or `register_hook`.
        So methods are looked up on the class.

        Args:
            modules: For each node the index of its module call.
            frames: For each node the index of its line.
            makers: By thread and sequence number, the node whose backward made this one.
        """
        walk, classes, read_saved, outputs_of = self._walk, self._classes, self._saved.read, self._forward_outputs
        has_more = self._has_hooks or bool(makers)
        found = []
        places = zip(walk.nodes, walk.sequence_nrs, walk.next_edges, modules, frames, strict=True)
        for node, sequence_nr, edges, module, frame in places:
            node_class = classes.get(type(node)) or self.node_class(node)
            names = node_class.saved
            outputs = outputs_of(node)
            saved = () if names.is_empty else read_saved(node, names, is_in_model=module is not None)
            if has_more or not node_class.is_plain or sequence_nr >= THREAD_SPAN:
                shared = _Shared(sequence_nr, edges, outputs, saved, module, frame)
                found.append(self._record_more(node, node_class, shared, makers.get(sequence_nr)))
                continue
            recorded = Node(  # nearly all nodes; what is not passed costs nothing
                name=node_class.name,  # type: ignore[arg-type]  # a plain class has one
                kind="generated",
                sequence_nr=sequence_nr,
                forward_outputs=outputs,
                next_edges=edges,
                saved=saved,
                module=module,
                frame=frame,
            )
            found.append(recorded)
        return found

    def _record_more(self, node: Any, node_class: NodeClass, shared: "_Shared", maker: Maker | None) -> Node:
        """Record a node that has more than what torch generates for each."""
        name = node_class.name or type(node).name(node).removeprefix("torch::autograd::")
        flops = UNKNOWN
        if node_class.has_flops:
            flops = self._flops.of_node(name, shared.forward_outputs, shared.saved, shared.next_edges)
        is_known = shared.sequence_nr < UNKNOWN_NR
        return Node(
            name=name,
            kind=node_class.kind,
            sequence_nr=shared.sequence_nr % THREAD_SPAN if is_known else None,
            thread=shared.sequence_nr // THREAD_SPAN if is_known else 0,
            forward_outputs=shared.forward_outputs,
            next_edges=shared.next_edges,
            saved=shared.saved,
            leaf=self._leaf(node) if node_class.kind == "accumulate_grad" else None,
            function=node_class.function,
            module=shared.module,
            frame=shared.frame,
            made_by=None if maker is None else maker.name,
            hooks=self._node_hooks(node, shared.sequence_nr) if self._has_hooks else (),
            flops=flops.forward,
            backward_flops=flops.backward,
        )

    def _forward_outputs(self, node: Any) -> tuple[TensorInfo | None, ...]:
        try:
            return self.infos.of_outputs(forward_metadata(node))
        except (RuntimeError, AttributeError, TypeError):
            return (None,)

    def _leaf(self, node: Any) -> Leaf | None:
        tensor = getattr(node, "variable", None)
        if tensor is None:
            return None
        named = self._names.of_leaf(tensor)
        return Leaf(
            info=self.infos.of_tensor(tensor),
            kind=named.kind,
            name=named.name,
            aliases=named.aliases,
            storage=self._storage_number(tensor),
            requires_grad=requires_grad_here(tensor),
            has_grad=_has_grad(tensor),
        )

    def _storage_number(self, tensor: torch.Tensor) -> int | None:
        if has_inner_tensors(tensor):
            return next(iter(self.storages.numbers_within(tensor)), None)
        try:
            return self.storages.look_up(tensor, "input").number
        except (RuntimeError, NotImplementedError):
            return None

    def _node_hooks(self, node: Any, identity: int) -> tuple[Hook, ...]:
        hooks = node_hooks(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            return (*hooks, *tensor_hooks(variable))
        return hooks if self._hooks_on_outputs is None else (*self._hooks_on_outputs(identity), *hooks)


# Those of torch: a subclass may have some of its own, which fail.
_grad: Callable[[torch.Tensor], Any] = torch.Tensor.grad.__get__


def _has_grad(tensor: torch.Tensor) -> bool:
    try:
        return _grad(tensor) is not None
    except RuntimeError:
        return False
