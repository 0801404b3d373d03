"""Parameters that backward reaches and no optimizer holds, where that cannot be on purpose.

NOTE [Unheld on purpose]
A perceptual loss, a linear probe, an adversarial example and a critic all reach parameters that their optimizer does
not hold. So a parameter counts only if the same model has others that an optimizer holds, and if it is hidden from
`parameters()` in a plain list, dict or attribute, or became part of the model after the optimizer was made.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.checks.evidence.training.gradient_use import UsedParameter, held_by
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.record.instances import instances_of
from gradinspect.record.names import named_modules
from gradinspect.torch_api.modules import HOLDERS, own_children, own_parameters

MAX_ELEMENTS = 1_000
_CONTAINERS = (list, tuple, set, dict)


class Unheld(NamedTuple):
    """A parameter that no optimizer holds."""

    kind: str  # "container", "attribute", "replaced", "remade", "later"
    where: str  # the attribute or module that has it
    parameter: UsedParameter
    frame: int | None  # that made it part of the model
    optimizer: SeenOptimizer


def unheld(
    reached: Sequence[UsedParameter],
    roots: Iterable[nn.Module],
    optimizers: Sequence[SeenOptimizer],
    registrations: Registrations,
) -> Iterator[Unheld]:
    """Yield the parameters that no optimizer holds.

    Args:
        reached: Those that backward calls reached.
        roots: The outermost modules that were called.
        optimizers: All of them.
        registrations: When modules and parameters became part of their modules.
    """
    held = {key for one in optimizers for key in one.holds()}
    left = {
        id(tensor): one
        for one in reached
        if (tensor := one.tensor()) is not None and id(tensor) not in held and tensor.requires_grad and not one.read
    }
    if left:  # an optimizer may have been copied or loaded, and never stepped
        held = {id(tensor) for optimizer in instances_of(Optimizer) for tensor in held_by(optimizer)}
        left = {key: one for key, one in left.items() if key not in held}
    for root in roots if left else ():
        modules = named_modules(root)
        owned = {id(parameter) for _, module in modules for parameter in own_parameters(module).values()}
        optimizer = next((one for one in optimizers if one.num_steps and one.holds() & owned), None)
        if optimizer is None:
            continue
        yield from _registered_later(root, left, optimizer, registrations)
        hidden = {key: one for key, one in left.items() if key not in owned}
        for path, module in modules if hidden else ():
            yield from _hidden_in(path, module, hidden, optimizer, registrations)


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
                kind = "remade" if made.is_again else "replaced" if made.is_replacement else "later"
                yield Unheld(kind, where, one, made.frame, optimizer)
        for name, child in own_children(module).items():
            if child is not None:
                made = late or _late(child, optimizer, registrations)
                todo.append((path if late else f"{path}.{name}".lstrip("."), child, made))


def _late(member: Any, optimizer: SeenOptimizer, registrations: Registrations) -> Any:
    found = registrations.of(member)
    return found if found is not None and found.order > optimizer.order else None


def _hidden_in(
    path: str,
    module: nn.Module,
    hidden: dict[int, UsedParameter],
    optimizer: SeenOptimizer,
    registrations: Registrations,
) -> Iterator[Unheld]:
    """Yield what a module holds where `parameters()` does not look."""
    for name, value in list(vars(module).items()):
        if name in HOLDERS:
            continue
        where = f"{path}.{name}".lstrip(".")
        kind = "container" if isinstance(value, _CONTAINERS) else "attribute"
        for tensor, holder in _tensors_in(value):
            one = hidden.get(id(tensor))
            if one is None or (holder is not None and not holder.training) or (holder is None and not _is_learned(one)):
                continue
            made = registrations.first_of(tensor)
            yield Unheld(kind, where, one, None if made is None else made.frame, optimizer)


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
                for _, module in named_modules(part):
                    for parameter in own_parameters(module).values():
                        yield parameter, part


def _items(value: Any) -> list[Any]:
    if not isinstance(value, _CONTAINERS):
        return []
    return list(islice(dict.values(value) if isinstance(value, dict) else iter(value), MAX_ELEMENTS))
