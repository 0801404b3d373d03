"""Names of tensors and modules, from `named_parameters()` or the user's variables.

If there are several models, each gets the name of its variable as a prefix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import torch
from torch import nn

from gradinspect.analyses.structure.call_names import WRAPPED
from gradinspect.graph import LeafKind, Origin
from gradinspect.recording.names.instances import instances_of
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.values.storages import plain_tensors, storage_key
from gradinspect.torch_api.distributed.sharding import gathered_parameters
from gradinspect.torch_api.modules import (
    is_to_be_compiled,
    own_buffers,
    own_children,
    own_parameters,
    runs_code_of_torch,
)
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_leaf, requires_grad_here

# Modules that only wrap another one, whose names are the user's -> the attribute with the wrapped module.
_OF_SHARDS = "_flat_param"  # the parameter that FullyShardedDataParallel makes of those of its modules
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "OptimizedModule": WRAPPED,
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
}
_WRAPPER_PARTS = frozenset((WRAPPED, "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))

NamedModule = tuple[str, nn.Module]


class LeafName(NamedTuple):
    """The name of a leaf."""

    name: str | None
    kind: LeafKind
    aliases: tuple[str, ...] = ()


class Member(NamedTuple):
    """A parameter or a buffer of a model."""

    kind: LeafKind
    path: str
    tensor: torch.Tensor | None


class DeletedModel(NamedTuple):
    """What is still alive of a model that no longer exists."""

    class_name: str
    members: Sequence[Member]
    paths: Mapping[int, str]  # number of a called module -> its path


class Names:
    """The names of everything in one capture."""

    def __init__(self) -> None:
        """Start empty; `collect_names` fills it."""
        self.storages: dict[int, tuple[Origin, str]] = {}
        self.inputs: frozenset[int] = frozenset()  # storage keys of the tensors that models were given
        self.module_paths: dict[int, str] = {}
        self.uncompiled: list[str] = []  # paths of modules of which `module.compile()` finds nothing to compile
        self.gone_paths: dict[int, str] = {}  # recorder's number of a module that is gone, or may soon be -> path
        self.model_name = "model"  # of the module whose path is ""
        self.unreached: list[str] = []  # parameters that are no leaf of the graph, of models that have leaves
        self._leaves: dict[int, LeafName] = {}

    def of_leaf(self, tensor: torch.Tensor) -> LeafName:
        """Name a leaf; without a name, return only its kind."""
        found = self._leaves.get(id(tensor))
        if found is not None:
            return found
        return LeafName(None, "parameter" if isinstance(tensor, nn.Parameter) else "variable")

    def add_module(self, modules: Sequence[NamedModule], members: Iterable["Member"], prefix: str) -> None:
        """Name the submodules of a model, as `named_modules` lists them, and its members, as `members_of` does."""
        for path, module in modules:
            self.module_paths.setdefault(id(module), _join(prefix, path))
            if compiles_nothing(module):
                self.uncompiled.append(_join(prefix, path))
        self.add_members(members, prefix)

    def add_members(self, members: Iterable["Member"], prefix: str) -> None:
        """Name the parameters and buffers of one model."""
        for kind, path, tensor in members:
            if tensor is not None:
                self._add_tensor(tensor, kind, _join(prefix, path))

    def add_variable(self, variable: Variable) -> None:
        """Name a tensor after a variable, unless it belongs to a model."""
        if isinstance(variable.value, torch.Tensor) and is_leaf(variable.value):
            self._add_tensor(variable.value, "variable", variable.name, is_alias=False)

    def add_leaf(self, tensor: torch.Tensor, name: str) -> None:
        """Name a parameter that only the graph holds: its bytes are held for backward, not those of a model."""
        self._leaves.setdefault(id(tensor), LeafName(name, "parameter"))

    def _add_tensor(self, tensor: torch.Tensor, kind: LeafKind, name: str, *, is_alias: bool = True) -> None:
        before = self._leaves.get(id(tensor))
        if before is None:
            self._leaves[id(tensor)] = LeafName(name, kind)
        elif is_alias and name not in (before.name, *before.aliases):
            self._leaves[id(tensor)] = before._replace(aliases=(*before.aliases, name))
        for part in plain_tensors(tensor) if _num_elements(tensor) else ():
            key = storage_key(part)
            if key is not None:
                self.storages.setdefault(key, (kind if kind != "variable" else "input", name))


_num_elements: Callable[[torch.Tensor], Any] = ops.numel  # a subclass may have one of its own, which fails


def members_of(root: nn.Module) -> list[Member]:
    """List the parameters and buffers of a model, grouped by submodule."""
    return _members(named_modules(root))


def _members(modules: Sequence[NamedModule]) -> list[Member]:
    members: list[Member] = []
    paths = {id(module): path for path, module in modules}
    for path, module in modules:
        members += [Member("parameter", _join(path, name), tensor) for name, tensor in own_parameters(module).items()]
        members += [Member("buffer", _join(path, name), tensor) for name, tensor in own_buffers(module).items()]
        members += [
            Member("parameter", _join(paths[id(owner)], name), tensor)
            for owner, name, tensor in gathered_parameters(module) if id(owner) in paths
        ]  # fmt: skip
    return members


def collect_names(
    leaves: Sequence[torch.Tensor],
    called: Iterable[nn.Module],
    variables: Sequence[Variable],
    gone: Sequence[DeletedModel] = (),
) -> Names:
    """Collect the names of the leaves and modules of a graph.

    Args:
        leaves: The tensors behind AccumulateGrad nodes.
        called: The called modules, outermost first.
        variables: The variables visible in the user's frames, the best names first.
        gone: Models that were called and no longer exist.
    """
    seen = [variable.value for variable in variables if isinstance(variable.value, nn.Module)]
    trees = _Trees()
    roots = _roots([*called, *seen], trees)
    num_models = sum(
        1 for root in roots if trees.parameters(root)
    )  # in view at every call, also those that this graph does not reach
    wanted = {id(leaf) for leaf in leaves}
    parameters = {id(leaf) for leaf in leaves if isinstance(leaf, nn.Parameter)}
    owned = {id(root): trees.parameters(root) & wanted for root in roots}
    owners_gone = [model for model in gone if any(id(member.tensor) in parameters for member in model.members)]
    known_gone = {id(member.tensor) for model in owners_gone for member in model.members}
    if parameters.difference(known_gone, *owned.values()):
        roots = _roots([*roots, *_living_modules(leaves)], trees)
        owned = {id(root): trees.parameters(root) & wanted for root in roots}
    names = Names()
    held_by = _variable_names(variables)
    owners = _owners(roots, owned)
    prefixes: set[str] = set()
    is_only = len(owners) + len(owners_gone) == 1 and num_models <= 1
    for root in sorted(roots, key=lambda root: id(root) not in owners):
        name = held_by.get(id(root))
        if is_only and id(root) in owners:
            names.model_name = name or names.model_name
            prefix = ""
        else:
            prefix = _unique(name or type(root).__name__, prefixes)
        names.add_module(trees.modules(root), trees.members(root), prefix)
        if id(root) in owners:
            names.unreached += _unreached(trees.members(root), wanted, prefix)
    for model in gone:
        is_alone = not owners and owners_gone == [model]
        _add_gone(names, model, "" if is_alone else _unique(model.class_name, prefixes))
    for variable in variables:
        names.add_variable(variable)
    return names


def _unreached(members: Iterable[Member], leaves: AbstractSet[int], prefix: str) -> Iterator[str]:
    """Name the parameters of a model that require a gradient and are no leaf of the graph, each once."""
    parameters = [(path, tensor) for kind, path, tensor in members if kind == "parameter" and tensor is not None]
    reached = {path for path, tensor in parameters if id(tensor) in leaves}
    if any(path.endswith(_OF_SHARDS) for path in reached):  # what it is made of are parameters, too
        return
    seen = set(leaves)
    for path, tensor in parameters:  # a sharded one is another tensor while it is gathered
        if path not in reached and id(tensor) not in seen and requires_grad_here(tensor):
            seen.add(id(tensor))
            yield _join(prefix, path)


def _add_gone(names: Names, model: DeletedModel, prefix: str) -> None:
    names.add_members(model.members, prefix)
    for number, path in model.paths.items():
        names.gone_paths.setdefault(number, _join(prefix, path))


def _owners(roots: list[nn.Module], owned: dict[int, set[int]]) -> set[int]:
    """Choose as few models as cover the graph's parameters, largest first."""
    left = set().union(*owned.values()) if owned else set()
    owners = set()
    for root in sorted(roots, key=lambda root: -len(owned[id(root)])):
        if owned[id(root)] & left:
            owners.add(id(root))
            left -= owned[id(root)]
    return owners


class _Trees:
    """The modules and members of each model, listed once for a capture. Their owner keeps the models alive."""

    def __init__(self) -> None:
        """Start empty."""
        self._modules: dict[int, list[NamedModule]] = {}
        self._members: dict[int, list[Member]] = {}

    def modules(self, root: nn.Module) -> list[NamedModule]:
        """List a module and its submodules."""
        found = self._modules.get(id(root))
        if found is None:
            found = self._modules[id(root)] = named_modules(root)
        return found

    def members(self, root: nn.Module) -> list[Member]:
        """List their parameters and buffers."""
        found = self._members.get(id(root))
        if found is None:
            found = self._members[id(root)] = _members(self.modules(root))
        return found

    def parameters(self, root: nn.Module) -> set[int]:
        """Return the ids of their parameters."""
        return {id(one.tensor) for one in self.members(root) if one.kind == "parameter" and one.tensor is not None}


def _roots(modules: Iterable[nn.Module], trees: _Trees) -> list[nn.Module]:
    """Keep the modules that are not part of another, each once, in order."""
    candidates = {id(module): module for module in map(unwrapped_module, modules)}
    inner: set[int] = set()
    for key, module in candidates.items():
        if key not in inner:
            inner.update([id(part) for _, part in trees.modules(module) if part is not module])
    return [module for key, module in candidates.items() if key not in inner]


def unwrapped_module(module: nn.Module) -> nn.Module:
    """Return the user's model inside its wrappers."""
    while type(module).__name__ in _WRAPPERS:
        wrapped = own_children(module).get(_WRAPPERS[type(module).__name__])
        if wrapped is None:
            break
        module = wrapped
    return module


def named_modules(root: nn.Module) -> list[NamedModule]:
    """List a module and its submodules with their names, without calling methods that users may override."""
    return _submodules(root, _join)


def module_paths(root: nn.Module) -> list[NamedModule]:
    """List the same with their paths as `get_submodule` takes them, the parts of wrappers included."""
    return _submodules(root, lambda path, name: f"{path}.{name}" if path else name)


def _submodules(root: nn.Module, join: Callable[[str, str], str]) -> list[NamedModule]:
    found: dict[int, NamedModule] = {}
    todo = [("", root)]
    while todo:
        path, module = todo.pop()
        if id(module) in found:
            continue
        found[id(module)] = (path, module)
        parts = [(join(path, name), part) for name, part in own_children(module).items() if part is not None]
        todo.extend(reversed(parts))
    return list(found.values())


def compiles_nothing(module: nn.Module) -> bool:
    """Return whether the program has called `module.compile()`, and all the code in it is torch's: it runs in eager."""
    return is_to_be_compiled(module) and all(runs_code_of_torch(part) for _, part in named_modules(module))


def all_parameters(root: nn.Module) -> Iterator[Any]:
    """Yield the parameters of a module and its submodules, without calling methods that users may override.

    One that has several places comes several times.
    """
    for _, module in named_modules(root):
        yield from (parameter for parameter in own_parameters(module).values() if parameter is not None)
        yield from (parameter for _, _, parameter in gathered_parameters(module))


def _join(path: str, name: str) -> str:
    if name in _WRAPPER_PARTS:
        return path
    return f"{path}.{name}" if path and name else path or name


def _living_modules(leaves: Sequence[torch.Tensor]) -> list[nn.Module]:
    """List every module of this process, largest first, for models that only a closure or a call holds.

    Those that are alike come in the order of the graph's leaves: that of the garbage collector may change.
    """
    places = {id(leaf): place for place, leaf in enumerate(leaves)}

    def order(module: nn.Module) -> tuple[int, str, int]:
        place = min((places.get(id(one), len(leaves)) for one in all_parameters(module)), default=len(leaves))
        return -len(named_modules(module)), type(module).__qualname__, place

    return sorted(instances_of(nn.Module), key=order)


def _variable_names(variables: Iterable[Variable]) -> dict[int, str]:
    names: dict[int, str] = {}
    for variable in variables:
        if isinstance(variable.value, nn.Module):
            names.setdefault(id(unwrapped_module(variable.value)), variable.name)
    return names


def _unique(name: str, taken: set[str]) -> str:
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name}#{number}"
    taken.add(unique)
    return unique
