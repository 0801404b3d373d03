"""What an operator of the dispatcher is called, takes and writes."""

from typing import Any

import torch

from gradinspect.torch_api.probes import private

_PACKET = private("torch._ops.OpOverloadPacket", "writes by operators that torch.ops names may not be seen")
_OVERLOAD = private("torch._ops.OpOverload", "writes in place are not seen")


def is_operator(func: Any) -> bool:
    """Tell an operator of the dispatcher from a function of torch and from a higher-order operator."""
    return _OVERLOAD.is_there and isinstance(func, _OVERLOAD.value)


def operator_schemas(func: Any, name: str) -> list[Any]:
    """List the schemas of all overloads of an operator.

    Args:
        func: An operator, whose schema is the one; or any function.
        name: Of the operator behind the function, if there is one: `add_`.
    """
    if is_operator(func):
        return [func._schema]
    is_packet = _PACKET.is_there and isinstance(func, _PACKET.value)
    packet = func if is_packet else getattr(torch.ops.aten, name, None)
    return [] if packet is None else [getattr(packet, overload)._schema for overload in packet.overloads()]


def writes(argument: Any) -> bool:
    """Tell whether an operator writes into an argument of its schema."""
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def operator_name(func: Any) -> str:
    """Return the name of an operator without its overload: `aten.add_`."""
    return str(func._schema.name).replace("::", ".")
