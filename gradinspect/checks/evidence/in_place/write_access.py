"""What a torch function may write to, judged by its name and by the operators behind it.

NOTE [Detecting writes]
Nearly every write increments the version of its tensor, so comparing the versions of a call's arguments before and
after it detects writes by unknown operators. Only a few functions write silently, and those are known by name: batch
norm updates its statistics in training, fused optimizers their parameters, `apply_` calls back for every element, and
an assignment to `.data` gives a tensor other memory.
If the schema of an operator says that it writes to no argument, the comparison is skipped.
pytorch/pytorch#13402, #120622
"""

import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import torch

from gradinspect.checks.facts.value_flow import short_name
from gradinspect.torch_api.operators import operator_schemas, writes

_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train")
_ELEMENT_BY_ELEMENT = frozenset(("apply_", "map_", "map2_"))
_READS_ONLY = frozenset(("__getitem__", "__len__", "__bool__", "__float__", "__int__", "__index__", "__contains__"))
_GIVES_MEMORY = "torch.Tensor.data.__set__"
_ENGINE = frozenset(("backward", "grad"))  # writes by hooks inside are detected there


class Argument(NamedTuple):
    """An argument of a call, by its position or name."""

    position: int
    name: str

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return its value in a call; None if not given."""
        return args[self.position] if self.position < len(args) else kwargs.get(self.name)


class Access(NamedTuple):
    """What a function may write to."""

    arguments: bool  # any of them; otherwise only `out=`
    silent: tuple[Argument, ...] = ()  # these, without incrementing the version
    when: Argument | None = None  # only if this argument is true


def access_of(func: Any, name: str) -> Access:
    """Return what a function may write to. NOTE [Detecting writes].

    Args:
        func: The function.
        name: Its name in the documentation of torch.
    """
    short = short_name(name)
    if name.endswith(".__get__") or short in _READS_ONLY or short in _ENGINE:
        return Access(arguments=False)
    if short in _ELEMENT_BY_ELEMENT or name == _GIVES_MEMORY:
        return Access(arguments=True, silent=(Argument(0, "self"),))
    if "batch_norm" in short and "backward" not in short:
        arguments = tuple(_arguments(func, short))
        silent = tuple(one for one in arguments if one.name in _STATISTICS)
        when = next((one for one in arguments if one.name in _TRAINING), None)
        return Access(arguments=True, silent=silent, when=when)
    if short.startswith("_fused_") and short.endswith("_"):
        return Access(arguments=True, silent=tuple(_arguments(func, short)))
    return Access(arguments=isinstance(func, FunctionType) or _may_write(func, short))


def has_out_of_place_form(op: str) -> bool:
    """Return whether torch has an operator without the underscore: `clamp` for `clamp_`, but nothing for `zero_`."""
    name = op.removesuffix("_")
    if name == op:
        return False
    if hasattr(torch.Tensor, op):
        return callable(getattr(torch.Tensor, name, None))
    return callable(getattr(torch, name, None)) or callable(getattr(torch.nn.functional, name, None))


def _may_write(func: Any, short: str) -> bool:
    """Return whether an operator of this name writes to anything but `out=`."""
    schemas = operator_schemas(func, _plain(short))
    return not schemas or any(writes(item) and not item.kwarg_only for schema in schemas for item in schema.arguments)


def _arguments(func: Any, short: str) -> Iterator[Argument]:
    """List the arguments of a torch function; for a fused operator, those that it writes to."""
    if isinstance(func, FunctionType):
        yield from (
            Argument(position, name)
            for position, name in enumerate(inspect.signature(func, follow_wrapped=False).parameters)
        )
        return
    schemas = operator_schemas(func, _plain(short))
    for position, item in enumerate(schemas[0].arguments if schemas else ()):
        if writes(item) or not short.startswith("_fused_"):
            yield Argument(position, item.name)


def _plain(short: str) -> str:
    """Return the operator of a function: `__mul__` is `mul`."""
    return short[2:-2] if short.startswith("__") and short.endswith("__") else short
