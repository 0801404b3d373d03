"""Models that are not what their code seems to say.

One layer in many places, a checkpoint that was not loaded, a `backward` that nobody calls.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from torch import nn

from gradinspect.checks.facts.training import NothingLoaded
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.source_structure import calls_of, lines_that_only_name, own_sources
from gradinspect.torch_api.modules import own_children

_ENGINE = ("torch.autograd", "autograd", "super()")  # what has a backward() of its own


class Repeated(NamedTuple):
    """A container that has one module in all its places."""

    path: str
    module: nn.Module
    num_places: int


def repeated_layers(roots: Iterable[nn.Module]) -> Iterator[Repeated]:
    """Yield the containers in which one module with parameters stands several times, and no other."""
    for root in roots:
        for path, module in named_modules(root):
            if isinstance(module, nn.ModuleList | nn.Sequential):
                children = list(own_children(module).values())
                first = children[0] if len(children) > 1 else None
                if first is not None and all(child is first for child in children) and _learns(first):
                    yield Repeated(path, first, len(children))


def own_backwards(roots: Iterable[nn.Module]) -> Iterator[tuple[CodeType, str]]:
    """Yield each `backward(self, grad)` that a class of the program gives to its modules, with the name of the class.

    A framework may call the one of a class of its own, which the program replaces. One that can be called without a
    gradient, as that of a tensor can, begins a backward call.
    """
    classes = {id(type(module)): type(module) for root in roots for _, module in named_modules(root)}
    for kind in classes.values():  # a class that the program made may have a hash of its own
        found = [vars(base)["backward"] for base in type.mro(kind) if "backward" in vars(base)]
        if len(found) == 1 and type(found[0]) is FunctionType:
            code = found[0].__code__
            num_needed = code.co_argcount - len(found[0].__defaults__ or ())  # a derivative needs a gradient
            if num_needed > 1 and is_own_file(code.co_filename):
                yield code, kind.__name__


def calls_backward_itself() -> bool:
    """Return whether a line of the program may call a `backward` that is given gradients, or hands one on."""
    for file in own_sources(".backward"):
        if any(lines_that_only_name(file, "backward")):
            return True
        if any(call.args and _receiver(call) not in _ENGINE for call in calls_of(file, "backward")):
            return True
    return False


def _receiver(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def unloaded(model: nn.Module, given: object, result: Any, frame: Frame | None) -> NothingLoaded | None:
    """Compare what load_state_dict was given with what it returned; None if it has loaded anything.

    Args:
        model: The model.
        given: The state dict.
        result: The missing and the unexpected keys.
        frame: The line of the call.
    """
    missing, unexpected = list(result.missing_keys), list(result.unexpected_keys)
    if not isinstance(given, Mapping) or not missing or len(unexpected) < len(given) or not given:
        return None
    name = next((one for one in unexpected for wanted in missing if one.endswith(f".{wanted}")), unexpected[0])
    wanted = next((one for one in missing if name.endswith(f".{one}") or one.endswith(f".{name}")), missing[0])
    is_nested = any(isinstance(value, Mapping) for value in given.values())
    if is_nested:
        name = next(str(key) for key, value in given.items() if isinstance(value, Mapping))
    return NothingLoaded(
        model=type(model).__name__,
        num_names=len(given),
        given=name,
        wanted=wanted,
        is_nested=is_nested,
        loaded=frame,
    )


def _learns(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in all_parameters(module))
