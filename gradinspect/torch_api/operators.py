"""What an operator of the dispatcher is called, takes and writes."""

from typing import Any

from gradinspect.torch_api.probes import private

_OVERLOAD = private("torch._ops.OpOverload", "writes in place are not seen")


def is_operator(func: Any) -> bool:
    """Tell an operator of the dispatcher from a function of torch and from a higher-order operator."""
    return _OVERLOAD.is_there and isinstance(func, _OVERLOAD.value)


def operator_name(func: Any) -> str:
    """Return the name of an operator without its overload: `aten.add_`."""
    return str(func._schema.name).replace("::", ".")


def operator_arguments(func: Any) -> list[Any]:
    """Return the arguments in an operator's schema: `.name`, `.alias_info`, which has `.is_write`."""
    return list(func._schema.arguments)
