"""What a torch function may write to, judged by its name and by the operators behind it.

NOTE [How a write shows]
Nearly every write raises the version of the tensor it goes into, so the versions of a call's arguments, before and
after it, tell of writes by operators that nobody has heard of. Only a few functions write in silence, and those are
known by name: batch norm updates its statistics in training, fused optimizers their parameters, and `apply_` calls back
for every element. That an operator writes into none of its arguments spares looking at them; its schema says so.
pytorch/pytorch#13402, #120622
"""

import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from gradinspect.checks.rules.value_flow import short_name
from gradinspect.torch_api.operators import operator_schemas, writes

_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train")
_ELEMENT_BY_ELEMENT = frozenset(("apply_", "map_", "map2_"))
_READS_ONLY = frozenset(("__getitem__", "__len__", "__bool__", "__float__", "__int__", "__index__", "__contains__"))
_ENGINE = frozenset(("backward", "grad"))  # what hooks write inside is seen there


class Argument(NamedTuple):
    """Where a call has a value: its position, or its name."""

    place: int
    name: str

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value that a call gives; None where it gives none."""
        return args[self.place] if self.place < len(args) else kwargs.get(self.name)


class Access(NamedTuple):
    """What a function may write into."""

    arguments: bool  # any of them; else only what `out=` names
    silent: tuple[Argument, ...] = ()  # these, without raising the version
    when: Argument | None = None  # and that only if this one is true


def access_of(func: Any, name: str) -> Access:
    """Tell what a function may write into. NOTE [How a write shows].

    Args:
        func: The function.
        name: What torch documents it as.
    """
    short = short_name(name)
    if name.endswith(".__get__") or short in _READS_ONLY or short in _ENGINE:
        return Access(arguments=False)
    if short in _ELEMENT_BY_ELEMENT:
        return Access(arguments=True, silent=(Argument(0, "self"),))
    if "batch_norm" in short and "backward" not in short:
        arguments = tuple(_arguments(func, short))
        silent = tuple(one for one in arguments if one.name in _STATISTICS)
        when = next((one for one in arguments if one.name in _TRAINING), None)
        return Access(arguments=True, silent=silent, when=when)
    if short.startswith("_fused_") and short.endswith("_"):
        return Access(arguments=True, silent=tuple(_arguments(func, short)))
    return Access(arguments=isinstance(func, FunctionType) or _may_write(func, short))


def _may_write(func: Any, short: str) -> bool:
    """Tell whether an operator of this name writes into anything but what `out=` names."""
    schemas = operator_schemas(func, _plain(short))
    return not schemas or any(writes(item) and not item.kwarg_only for schema in schemas for item in schema.arguments)


def _arguments(func: Any, short: str) -> Iterator[Argument]:
    """List the arguments of a function of torch; of an operator that updates many tensors, those that it writes."""
    if isinstance(func, FunctionType):
        yield from (
            Argument(place, name) for place, name in enumerate(inspect.signature(func, follow_wrapped=False).parameters)
        )
        return
    schemas = operator_schemas(func, _plain(short))
    for place, item in enumerate(schemas[0].arguments if schemas else ()):
        if writes(item) or not short.startswith("_fused_"):
            yield Argument(place, item.name)


def _plain(short: str) -> str:
    """Find the operator behind a function: `__mul__` is `mul`."""
    return short[2:-2] if short.startswith("__") and short.endswith("__") else short
