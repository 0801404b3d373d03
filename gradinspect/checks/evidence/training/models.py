"""Models that are not what their code seems to say: one layer in many places, a checkpoint that was not loaded."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from torch import nn

from gradinspect.checks.facts.training import NothingLoaded
from gradinspect.graph import Frame
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.torch_api.modules import own_children


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
