"""Models that backward reaches as a whole, and that no optimizer holds, where that cannot be on purpose.

NOTE [Left out on purpose]
A frozen backbone has `requires_grad` off, or is in eval mode, or was loaded; a target network is loaded or updated by
hand; a critic has another optimizer; a model that is explained or attacked has no optimizer at all. What is left is a
model of the program's own, made and trained from scratch as it seems, whose gradients nobody reads or clears, unless
the same line does so for what is trained. Who clips them means them for a step.

A part of a model that lies before the trained part, such as the backbone before a new head, may be kept as it is
simply by not passing it to the optimizer, and a prompt or adapters may learn in a model of a library. But a decoder
behind an encoder that learns is meant to learn as well. So is a parameter of a layer whose other parameters learn, and
a layer behind one that learns, if twice as much of the model is trained as is not: groups that are made by names or
types of layers leave such parameters out.

Of several optimizers, one that steps after the backward call that reaches a model should have it, or the second of two
that hold the same parameters. To which of them a part of a model belongs is not known, unless the others are gone, as
when models are trained one after the other.
"""

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import UsedParameter
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.torch_api.modules import own_children, own_parameters
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.tensors import known_version

LEAST_CALLS = 2


class LeftOut(NamedTuple):
    """A model that no optimizer holds."""

    name: str  # "Decoder", "Sequential decoder"
    parameters: list[UsedParameter]
    optimizer: SeenOptimizer
    is_instead: bool  # whether backward reaches nothing that the optimizer holds
    is_twin: bool = False  # whether the optimizer holds just what another one holds


def left_out(
    left: dict[int, UsedParameter],
    reached: Sequence[UsedParameter],
    roots: Sequence[nn.Module],
    optimizers: Sequence[SeenOptimizer],
    loaded: Collection[int],
) -> Iterator[LeftOut]:
    """Yield the models that no optimizer holds. NOTE [Left out on purpose].

    Args:
        left: The parameters that backward reached and no optimizer holds, by id.
        reached: All that backward reached.
        roots: The outermost modules that were called.
        optimizers: All of them.
        loaded: The ids of the modules that were loaded from a checkpoint.
    """
    stepping = [one for one in optimizers if one.num_steps >= LEAST_CALLS]
    if not stepping:
        return
    held = {key for one in stepping for key in one.holds()}
    trained = [one for one in reached if id(one.tensor()) in held]
    twin = _twin(stepping)
    of_models = {key for root in roots for key in _keys(root)} if len(stepping) > 1 else set()
    beside = [one for one in trained if id(one.tensor()) in of_models]
    for part in _parts_left(left, trained, roots, held, loaded):
        optimizer = twin or (_optimizer_for(part, stepping, beside) if trained else stepping[0])
        if optimizer is not None and (twin is None or part.is_whole):
            yield LeftOut(part.name, part.parameters, optimizer, not trained, twin is not None)


class _Part(NamedTuple):
    """A model that no optimizer holds, or a part of one."""

    name: str
    parameters: list[UsedParameter]
    is_whole: bool


def _parts_left(
    left: dict[int, UsedParameter],
    trained: Sequence[UsedParameter],
    roots: Sequence[nn.Module],
    held: Collection[int],
    loaded: Collection[int],
) -> Iterator[_Part]:
    models = [keys for root in roots if (keys := _keys(root).keys()) & held]
    if trained and not models:
        return  # it optimizes tensors of another kind, such as an input
    lines = {one.clearing for one in trained} - {None}
    for root in roots:
        keys = _keys(root).keys()
        is_made_here = _is_of_user(root) and _trains_a_layer(root, held)
        is_whole = not any(keys & others for others in models)
        for path, part in [("", root)] if is_whole else _left_parts(root, held):
            some = [left[key] for key in _keys(part) if key in left]
            is_untouched = all(_is_untouched(one) and (not trained or not _is_set_aside(one, lines)) for one in some)
            is_meant = not is_whole and not (is_made_here and _is_behind(some, trained))
            if some and not is_meant and not _is_loaded(root, loaded) and _seems_trained(part) and is_untouched:
                yield _Part(f"{type(part).__name__} {path}".rstrip(), some, is_whole)


def _optimizer_for(
    part: _Part, stepping: Sequence[SeenOptimizer], trained: Sequence[UsedParameter]
) -> SeenOptimizer | None:
    """Return the optimizer that should have a model. NOTE [Left out on purpose]."""
    living = [one for one in stepping if one.optimizer() is not None] or stepping
    if len(living) == 1:
        return living[0]
    lines = {one.backward for one in part.parameters if part.is_whole} - {None}
    after = {id(one.tensor()) for one in trained if one.stepped_after in lines}
    return next((one for one in living if one.holds() & after), None)


def _is_set_aside(one: UsedParameter, lines: Collection[int | None]) -> bool:
    """Return whether the gradient of a parameter is cleared by itself, as of a model that is only gone through."""
    return bool(one.cleared and not one.clipped and one.clearing not in lines)


def left_in_layers(
    root: nn.Module, left: dict[int, UsedParameter], held: Collection[int], reached: Sequence[UsedParameter]
) -> Iterator[tuple[str, UsedParameter]]:
    """Yield the parameters of layers that optimizers hold otherwise, with their names. NOTE [Left out on purpose].

    Those of a whole layer count as well if some lie behind one that learns, as all convolutions between their norms.
    """
    keys = _keys(root).keys()
    if 2 * len(keys & left.keys()) > len(keys & held):
        return
    own_left = [one for key, one in left.items() if key in keys]
    is_between = _is_of_user(root) and _is_last_behind(own_left, reached, keys & held)
    for path, module in named_modules(root):
        own = own_parameters(module)
        one_of = {name: left[id(one)] for name, one in own.items() if id(one) in left}
        if one_of and (is_between or _keys(module).keys() & held) and _seems_trained(module):
            yield from ((f"{path}.{name}".lstrip("."), one) for name, one in one_of.items() if _is_untouched(one))


def _twin(optimizers: Sequence[SeenOptimizer]) -> SeenOptimizer | None:
    """Return an optimizer that holds just what an earlier one holds."""
    seen: set[frozenset[int]] = set()
    for one in optimizers:
        held = one.holds()
        if held in seen:
            return one
        seen.add(held)
    return None


def _left_parts(root: nn.Module, held: Collection[int]) -> Iterator[tuple[str, nn.Module]]:
    """Yield the outermost parts of a model of which an optimizer holds nothing, with their paths."""
    todo = [("", root)]
    while todo:
        path, module = todo.pop()
        for name, child in own_children(module).items():
            if child is None or not (keys := _keys(child).keys()):
                continue
            inside = f"{path}.{name}".lstrip(".")
            if keys & held:
                todo.append((inside, child))
            else:
                yield inside, child


def _is_behind(some: Sequence[UsedParameter], trained: Sequence[UsedParameter]) -> bool:
    """Return whether parameters are read later than all trained ones of the same model, unlike the base of adapters."""
    before = [one.first_use for one in trained]
    own = [one.first_use for one in some]
    if not before or not own or None in (*before, *own):
        return False
    return min(one for one in own if one is not None) > max(one for one in before if one is not None)


def _is_last_behind(some: Sequence[UsedParameter], reached: Sequence[UsedParameter], held: Collection[int]) -> bool:
    """Return whether the last of some parameters is read later than the first that is trained."""
    trained = [one.first_use for one in reached if id(one.tensor()) in held and one.first_use is not None]
    own = [one.first_use for one in some if one.first_use is not None]
    return bool(trained and own) and max(own) > min(trained)


def _trains_a_layer(root: nn.Module, held: Collection[int]) -> bool:
    """Return whether an optimizer holds all of some part of a model, rather than single tensors such as a prompt."""
    return any(keys and keys <= set(held) for keys in (_keys(module).keys() for _, module in named_modules(root)))


def _is_of_user(root: nn.Module) -> bool:
    """Return whether the program itself defines a model: that of a library may come with its weights."""
    module = module_of(type(root))
    file = getattr(sys.modules.get(module), "__file__", None)
    return module.startswith("torch.nn.") or not isinstance(file, str) or is_own_file(file)


def _keys(root: nn.Module) -> dict[int, None]:
    """Return the ids of the parameters of a model, in its order."""
    return {id(parameter): None for parameter in all_parameters(root)}


def _is_loaded(root: nn.Module, loaded: Collection[int]) -> bool:
    return any(id(module) in loaded for _, module in named_modules(root))


def _seems_trained(root: nn.Module) -> bool:
    """Return whether nothing about a model says that it is not to be trained."""
    is_training = all(module.training for _, module in named_modules(root))
    return is_training and all(parameter.requires_grad for parameter in all_parameters(root))


def _is_untouched(one: UsedParameter) -> bool:
    """Return whether backward has reached a parameter again and again, and nobody has used that or changed it."""
    tensor = one.tensor()
    return (
        isinstance(tensor, torch.Tensor)
        and one.num_reached >= LEAST_CALLS
        and not one.is_input
        and not one.is_exposed
        and known_version(tensor) == one.version
    )
