"""Parameters that backward reaches and no optimizer holds, where that cannot be on purpose.

NOTE [Unheld on purpose]
A perceptual loss, a linear probe, an adversarial example and a critic all reach parameters that their optimizer does
not hold. So a parameter counts only if the same model has others that an optimizer holds, and if it is hidden from
`parameters()` in a plain list, dict or attribute, or became part of the model after the optimizer was made. One whose
gradient the program reads may be trained by hand, unless it reads those that an optimizer holds there as well, as to
log their norm.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple
from weakref import ReferenceType

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import UsedParameter, held_by
from gradinspect.checks.evidence.training.left_out import left_in_layers, left_out
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.facts.training import UnheldKind
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.transparency.own_errors import PassOver
from gradinspect.torch_api.modules import HOLDERS, own_buffers, own_children, own_parameters, unsaved_buffers
from gradinspect.torch_api.nodes import few_leaves_of
from gradinspect.torch_api.tensors import is_leaf
from gradinspect.torch_api.weak import HiddenRef

MAX_ELEMENTS = 1_000
MAX_NODES = 16  # between an attribute and the parameter it was computed from
_CONTAINERS = (list, tuple, set, dict)


class Unheld(NamedTuple):
    """A parameter that no optimizer holds."""

    kind: UnheldKind
    where: str  # the attribute or module that has it
    parameter: UsedParameter
    frame: int | None  # that made it part of the model
    optimizer: SeenOptimizer
    value: ReferenceType[torch.Tensor] | None = None  # what was computed from it

    @property
    def key(self) -> tuple[str, int | None]:
        """What is reported once: a name in the graphs of one line, or without a name what a line makes.

        Models that are trained one after the other, each in its own function, have parameters of the same names.
        """
        return (self.parameter.name, self.parameter.backward) if self.parameter.name else (self.where, self.frame)


def unheld(
    reached: Sequence[UsedParameter],
    roots: Sequence[nn.Module],
    optimizers: Sequence[SeenOptimizer],
    registrations: Registrations,
    loaded: Collection[int],
    pass_over: PassOver,
) -> Iterator[Unheld]:
    """Yield the parameters that no optimizer holds.

    Args:
        reached: Those that backward calls reached. One that no step has changed was in no optimizer that is gone: it
            may have the id of a tensor that is gone as well.
        roots: The outermost modules that were called.
        optimizers: All of them.
        registrations: When modules and parameters became part of their modules.
        loaded: The ids of modules that were loaded from a checkpoint.
        pass_over: Counts what is not looked at.
    """
    held = {key for one in optimizers for key in one.holds()}
    held_now = {key for one in optimizers if one.optimizer() is not None for key in one.holds()}
    usual = set[tuple[int, int]]().union(*(one.readers for one in reached if id(one.tensor()) in held))
    left = {
        id(tensor): one
        for one in reached
        if (tensor := one.tensor()) is not None
        and (id(tensor) not in (held_now if one.step is None else held) or one.is_forgotten)
        and tensor.requires_grad
        and one.readers <= usual
    }
    if left:  # an optimizer may have been copied or loaded, and never stepped
        held = {id(tensor) for optimizer in live_optimizers() for tensor in held_by(optimizer)}
        left = {key: one for key, one in left.items() if key not in held}
    for unlike in _unlike_their_model(roots, left, reached, optimizers, registrations, pass_over) if left else ():
        left.pop(id(unlike.parameter.tensor()), None)
        yield unlike
    for out in left_out(left, reached, roots, optimizers, loaded) if left else ():
        kind: UnheldKind = "twin" if out.is_twin else "instead" if out.is_instead else "model"
        yield from (Unheld(kind, out.name, one, None, out.optimizer) for one in out.parameters)


def _unlike_their_model(
    roots: Sequence[nn.Module],
    left: dict[int, UsedParameter],
    reached: Sequence[UsedParameter],
    optimizers: Sequence[SeenOptimizer],
    registrations: Registrations,
    pass_over: PassOver,
) -> list[Unheld]:
    """List those of a model that an optimizer holds otherwise. NOTE [Unheld on purpose]."""
    found: list[Unheld] = []
    for root in roots:
        owned = {id(parameter) for parameter in all_parameters(root)}
        holding = [one for one in optimizers if one.num_steps and one.holds() & owned]
        optimizer = min(holding, key=_is_of_the_past, default=None)
        optimizer = optimizer or _before_replacement(root, left, optimizers, registrations)
        if optimizer is None:
            continue
        found += _registered_later(root, left, optimizer, registrations)
        found += _unfrozen_later(root, left, optimizer, registrations)
        known = {id(one.parameter.tensor()) for one in found}
        held = {key for one in optimizers for key in one.holds()}
        others = {key: one for key, one in left.items() if key not in known}
        found += (
            Unheld("group", path, one, None, optimizer) for path, one in left_in_layers(root, others, held, reached)
        )
        hidden = {key: one for key, one in left.items() if key not in owned}
        for path, module in named_modules(root) if hidden else ():
            found += _hidden_in(path, module, hidden, optimizer, registrations, pass_over)
    return found


def _is_of_the_past(one: SeenOptimizer) -> tuple[bool, bool]:
    """Return whether an optimizer is gone, and whether another one steps in its place, as after a pretraining."""
    return one.optimizer() is None, one.successor is not None


def _before_replacement(
    root: nn.Module, left: dict[int, UsedParameter], optimizers: Sequence[SeenOptimizer], registrations: Registrations
) -> SeenOptimizer | None:
    """Return the only optimizer that was made before parameters of a module were replaced."""
    replaced = [one for parameter in all_parameters(root) if id(parameter) in left
                and (one := registrations.of(parameter)) is not None and one.is_replacement]  # fmt: skip
    before = [one for one in optimizers if one.num_steps and any(late.order > one.order for late in replaced)]
    return before[0] if len(before) == 1 else None


def _registered_later(
    root: nn.Module, left: dict[int, UsedParameter], optimizer: SeenOptimizer, registrations: Registrations
) -> Iterator[Unheld]:
    """Yield what became part of a model after its optimizer was made."""
    if optimizer.created is None:
        return
    todo: list[tuple[str, nn.Module, Any]] = [("", root, None)]
    seen: set[int] = set()
    while todo:
        path, module, late = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, parameter in own_parameters(module).items():
            one = left.get(id(parameter))
            made = late or _late(parameter, optimizer, registrations)
            first = registrations.first_of(parameter)
            if one is not None and made is not None and first is not None and first.order > optimizer.order:
                where = path if late else f"{path}.{name}".lstrip(".")
                kind: UnheldKind = "remade" if made.is_again else "replaced" if made.is_replacement else "later"
                yield Unheld(kind, where, one, made.frame, optimizer)
        for name, child in own_children(module).items():
            if child is not None:
                made = late or _late(child, optimizer, registrations)
                todo.append((path if late else f"{path}.{name}".lstrip("."), child, made))


def _unfrozen_later(
    root: nn.Module, left: dict[int, UsedParameter], optimizer: SeenOptimizer, registrations: Registrations
) -> Iterator[Unheld]:
    """Yield what was frozen when its optimizer was made of the parameters that required grad."""
    for path, module in named_modules(root):
        for parameter in own_parameters(module).values():
            one, thawed = left.get(id(parameter)), registrations.unfrozen(parameter)
            if one is not None and thawed is not None and thawed.order > optimizer.order:
                yield Unheld("unfrozen", f"{type(module).__name__} {path}".rstrip(), one, thawed.frame, optimizer)


def _late(member: Any, optimizer: SeenOptimizer, registrations: Registrations) -> Any:
    found = registrations.of(member)
    return found if found is not None and found.order > optimizer.order else None


def _hidden_in(
    path: str,
    module: nn.Module,
    hidden: dict[int, UsedParameter],
    optimizer: SeenOptimizer,
    registrations: Registrations,
    pass_over: PassOver,
) -> Iterator[Unheld]:
    """Yield what a module holds where `parameters()` does not look."""
    attributes = {name: value for name, value in vars(module).items() if name not in HOLDERS}
    unsaved = unsaved_buffers(module)  # what is not kept is not meant to learn, such as a zero to begin a sum with
    buffers = {name: value for name, value in own_buffers(module).items() if name not in unsaved}
    for name, value in {**attributes, **buffers}.items():
        where = f"{path}.{name}".lstrip(".")
        kind: UnheldKind = (
            "buffer" if name in buffers else "container" if isinstance(value, _CONTAINERS) else "attribute"
        )
        if isinstance(value, _CONTAINERS) and len(value) > MAX_ELEMENTS:
            pass_over("attribute of a module", f"after the first {MAX_ELEMENTS:,} elements", 1)
        for tensor, holder in _tensors_in(value):
            if not is_leaf(tensor):
                yield from _computed_from(tensor, where, hidden, optimizer)
                continue
            one = hidden.get(id(tensor))
            if one is None or (holder is not None and not holder.training) or (holder is None and not _is_learned(one)):
                continue
            made = registrations.first_of(tensor)
            yield Unheld(kind, where, one, None if made is None else made.frame, optimizer)


def _computed_from(
    value: torch.Tensor, where: str, hidden: dict[int, UsedParameter], optimizer: SeenOptimizer
) -> Iterator[Unheld]:
    """Yield the leaf that an attribute was computed from: `nn.Parameter(x) * 0.02` is no parameter."""
    for leaf in few_leaves_of(value, MAX_NODES):
        one = hidden.get(id(leaf))
        if one is not None and _is_learned(one):
            yield Unheld("computed", where, one, None, optimizer, HiddenRef(value))


def _is_learned(one: UsedParameter) -> bool:
    """Return whether a tensor without a module is meant to learn, unlike an input whose gradient is wanted."""
    return one.num_reached > 1 and not one.is_input


def _tensors_in(value: Any) -> Iterator[tuple[torch.Tensor, nn.Module | None]]:
    """Yield the tensors and the parameters of modules in an attribute, as far as two levels of containers."""
    if isinstance(value, torch.Tensor):
        yield value, None
        return
    for item in _items(value):
        for part in (item, *_items(item)):
            if isinstance(part, torch.Tensor):
                yield part, None
            elif isinstance(part, nn.Module):
                yield from ((parameter, part) for parameter in all_parameters(part))


def _items(value: Any) -> list[Any]:
    if not isinstance(value, _CONTAINERS):
        return []
    return list(islice(dict.values(value) if isinstance(value, dict) else iter(value), MAX_ELEMENTS))
