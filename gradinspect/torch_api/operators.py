"""Names and schemas of dispatcher operators, and the arguments they write to."""

from functools import cache
from typing import Any

import torch

from gradinspect.torch_api.probes import private

_PACKET = private("torch._ops.OpOverloadPacket", "writes by operators in torch.ops may not be seen")
_OVERLOAD = private("torch._ops.OpOverload", "writes in place are not seen")
_FLASH = "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"
_ATTENTION = private(f"{_FLASH}.default", "fit does not count the scratch memory of attention")
_ATTENTION_BACKWARD = private(f"{_FLASH}_backward.default", "fit does not count the scratch memory of attention")
_CONVERT = private("torch.ops.aten._to_copy.default", "plan does not count what comes back from the CPU")
_UNIQUE = private("torch.ops.aten._unique2.default", "fit does not answer how many different values there are")
_PACK = private("torch.ops.aten._pack_padded_sequence.default", "fit does not answer how sequences are packed")

OPERATORS: tuple[type, ...] = tuple(  # with the kinds of them, such as that of the operators of the profiler
    kind for root in (_PACKET, _OVERLOAD) if root.is_there for kind in (root.value, *root.value.__subclasses__())
)
converting: Any = _CONVERT.or_else(None)
copying: tuple[Any, ...] = (torch.ops.aten.copy_.default, converting)
unique_elements: Any = _UNIQUE.or_else(None)
packs_sequences: Any = _PACK.or_else(None)
cpu_attention: Any = _ATTENTION.or_else(None)
cpu_attention_backward: Any = _ATTENTION_BACKWARD.or_else(None)


def is_operator(func: Any) -> bool:
    """Return whether this is a dispatcher operator, not a torch function or a higher-order operator."""
    return _OVERLOAD.is_there and isinstance(func, _OVERLOAD.value)


def operator_schemas(func: Any, name: str) -> list[Any]:
    """List the schemas of all overloads of an operator.

    Args:
        func: An operator, which has exactly one schema, or any function.
        name: The name of the operator behind the function, if any: `add_`.
    """
    if is_operator(func):
        return [func._schema]
    is_packet = _PACKET.is_there and isinstance(func, _PACKET.value)
    packet = func if is_packet else getattr(torch.ops.aten, name, None)
    return [] if packet is None else [getattr(packet, overload)._schema for overload in packet.overloads()]


def writes(argument: Any) -> bool:
    """Return whether an operator writes to an argument of its schema."""
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def operator_name(func: Any) -> str:
    """Return the name of an operator without its overload: `aten.add_`."""
    return str(func._schema.name).replace("::", ".")


@cache
def shows_its_arguments(operator: Any) -> bool:
    """Return whether an operator's results share memory with its arguments: a view, or a change in place."""
    return any(result.alias_info is not None for result in operator._schema.returns)


def is_mutable(operator: Any) -> bool:
    """Return whether an operator writes to any of its arguments."""
    return bool(operator._schema.is_mutable)
