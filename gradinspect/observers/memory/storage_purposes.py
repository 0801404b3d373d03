"""What storages are for: parameters, buffers, gradients, optimizer state, saved for backward, variables of the user.

What comes in: a live graph, a live optimizer, or what the user's frames see. What goes out: labels on storages. A
parameter, its gradient and its optimizer state have one name and belong to one module.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType

import torch
from torch.optim import Optimizer

from gradinspect.analyses.memory.step import StorageKind
from gradinspect.observers.memory.storage_ledger import Purpose
from gradinspect.recording.compiled import makers_of_saved
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.names import Names, all_parameters, collect_names, members_of
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors, storage_key
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.compiled_graphs import unchecked_tensors
from gradinspect.torch_api.distributed.sharding import local_tensor
from gradinspect.torch_api.nodes import function_class, is_compiled_class
from gradinspect.torch_api.saved import saved_contents
from gradinspect.torch_api.weak import HiddenRef


class Label(NamedTuple):
    """One tensor, and what its memory is for."""

    tensor: torch.Tensor
    kind: StorageKind
    name: str = ""
    owner: str | None = None
    shape: str = ""  # of one that ranks share: of all together, and what this rank has

    @property
    def purpose(self) -> Purpose:
        """What its memory is for."""
        return Purpose(self.kind, self.name, self.owner, self.shape)


class Purposes:
    """Finds them, and remembers what parameters are called."""

    def __init__(self, recorder: Recorder) -> None:
        """Start empty."""
        self.names = Names()  # of the last graph
        self._recorder = recorder
        self._names: dict[int, str] = {}  # key of a parameter's storage -> its name
        self._members: set[int] = set()  # keys of the storages of parameters and buffers of modules
        self._saved_names: dict[type, list[str]] = {}
        self._leaves: list[ReferenceType[torch.Tensor]] = []  # of the graph that backward goes through

    def of_graph(self, roots: Iterable[Any], variables: Callable[[], list[Variable]]) -> Iterator[Label]:
        """Label what a graph holds that backward is about to go through, and what the user's variables show."""
        walk = Walk(roots)
        try:
            leaves = list(walk.leaves().values())
            self._leaves = [HiddenRef(leaf) for leaf in leaves]
            found = variables()
            called = self._recorder.called_modules()
            names = collect_names(leaves, called, found, self._recorder.kept_names.gone())
            self._recorder.keep_paths(names)  # a model that a function has made is gone when the record is made
            self.names = names
            self._take_names(names)
            modules = [variable.value for variable in found if isinstance(variable.value, torch.nn.Module)]
            for module in dict.fromkeys([*called, *modules]):
                yield from self._of_module(module)
            for leaf in leaves:
                yield self._label(leaf, "parameter" if isinstance(leaf, torch.nn.Parameter) else "input")
            for node in walk.nodes:
                yield from self._saved_by(node)
            for variable in found:
                if isinstance(variable.value, torch.Tensor) and variable.value.is_leaf:
                    yield Label(variable.value, "input", variable.name)
            yield from self.gradients(leaves)
        finally:
            walk.close()

    def of_models(self, models: Sequence[torch.nn.Module]) -> Iterator[Label]:
        """Label the parameters and buffers of models, and their gradients."""
        leaves = [parameter for model in models for parameter in all_parameters(model)]
        names = collect_names(leaves, models, ())
        self._take_names(names)
        for model in models:
            yield from self._of_module(model)

    def after_call(self) -> Iterator[Label]:
        """Label the gradients that backward has left."""
        yield from self.gradients(leaf for reference in self._leaves if (leaf := reference()) is not None)

    def gradients(self, leaves: Iterable[torch.Tensor]) -> Iterator[Label]:
        """Label the gradients of some leaves."""
        for leaf in leaves:
            gradient = leaf.grad  # another thread may take it away
            if gradient is not None:
                yield self._label(leaf, "gradient")._replace(tensor=gradient)

    def of_optimizer(self, optimizer: Optimizer) -> Iterator[Label]:
        """Label the parameters of an optimizer, their gradients, and its state."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        yield from (self._label(parameter, "parameter") for parameter in parameters)
        yield from self.gradients(parameters)
        states = {id(parameter): state for parameter, state in optimizer.state.items()}  # a look-up would hash tensors
        for parameter in parameters:
            if id(parameter) in states:
                of_parameter = self._label(parameter, "optimizer_state")
                state = dict(states[id(parameter)])
                yield from (of_parameter._replace(tensor=tensor) for tensor in plain_tensors(state))
        groups = [dict(group, params=()) for group in optimizer.param_groups]
        yield from (Label(tensor, "optimizer_state") for tensor in plain_tensors(groups))

    def _of_module(self, module: torch.nn.Module) -> Iterator[Label]:
        for kind, _, tensor in members_of(module):
            if tensor is not None:
                yield self._label(tensor, "buffer" if kind == "buffer" else "parameter")
                yield from self.gradients([tensor] if tensor.is_leaf else [])

    def _label(self, tensor: torch.Tensor, kind: StorageKind) -> Label:
        keys = (storage_key(part) for part in plain_tensors(tensor))  # a DTensor's memory is that of its local one
        key = next((key for key in keys if key in self._names), None)
        name = "" if key is None else self._names[key]
        owner = name.rpartition(".")[0] or ("" if key in self._members else None)
        return Label(tensor, kind, name, owner, _shape_on_ranks(tensor))

    def _take_names(self, names: Names) -> None:
        self._names |= {key: name for key, (_, name) in names.storages.items()}
        self._members |= {key for key, (origin, _) in names.storages.items() if origin in {"parameter", "buffer"}}

    def _saved_by(self, node: Any) -> Iterator[Label]:
        """Label what a node saves; what compiled code has made belongs to the module that its graph names."""
        contents = self._contents_of(node)
        makers: Sequence[str | None] = ()
        if is_compiled_class(function_class(node)):
            contents = [*contents, *unchecked_tensors(node)]
            makers = makers_of_saved(node, len(contents), self.names.module_paths, self._path_around(node))
        for place, content in enumerate(contents):
            owner = makers[place] if makers else None
            yield from (Label(tensor, "saved", owner=owner) for tensor in plain_tensors(content))

    def _path_around(self, node: Any) -> str | None:
        """Return the path of the module that made a node; None if it was made outside of modules."""
        number = self._recorder.module_of(self._recorder.others.identity_of(node))
        if number is None:
            return None
        path = self._recorder.module_path(number, self.names)
        return self._recorder.class_name(number) if path is None else path

    def _contents_of(self, node: Any) -> list[Any]:
        kind = type(node)
        if kind not in self._saved_names:
            self._saved_names[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        identity = self._recorder.others.identity_of(node)
        return saved_contents(node, self._saved_names[kind], identity, self._recorder.saved_hooks)


def held_before(recorder: Recorder) -> Iterator[Label]:
    """Label what the models that were called hold, and the optimizers of their parameters."""
    purposes, models = Purposes(recorder), recorder.called_modules()
    yield from purposes.of_models(models)
    owned = {id(parameter) for model in models for parameter in all_parameters(model)}
    for optimizer in live_optimizers():
        held = (parameter for group in optimizer.param_groups for parameter in group["params"])
        if any(id(parameter) in owned for parameter in held):
            yield from purposes.of_optimizer(optimizer)


def _shape_on_ranks(tensor: torch.Tensor) -> str:
    local = local_tensor(tensor)
    return "" if local is None else f"{list(tensor.shape)} local {list(local.shape)}"
