"""The arguments of the first call of each custom autograd.Function, copied before its forward sees them."""

from typing import Any, NamedTuple, Self

import torch


class CustomCall(NamedTuple):
    """A call of `apply`."""

    function: Any  # the class
    args: tuple[Any, ...]  # tensors are copies
    kwargs: dict[str, Any]


class CustomCalls:
    """Remembers one call of each Function while it is active. Use it as a context manager.

    `torch.autograd.Function.apply` is replaced, so a Function that overrides `apply` itself is not seen.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._calls: dict[str, CustomCall] = {}
        self._original: Any = None
        self._ours: Any = None

    def __enter__(self) -> Self:
        """Replace `apply`."""
        self._original = torch.autograd.Function.__dict__["apply"]
        original, note = self._original.__func__, self._note

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling():
                note(cls, args, kwargs)
            return original(cls, *args, **kwargs)

        self._ours = classmethod(apply)
        torch.autograd.Function.apply = self._ours
        return self

    def __exit__(self, *_error: object) -> None:
        """Put the original back, unless somebody has replaced ours meanwhile."""
        if torch.autograd.Function.__dict__.get("apply") is self._ours:
            torch.autograd.Function.apply = self._original

    def take(self, name: str) -> CustomCall | None:
        """Return the call of a Function, known by its qualified name, and forget it."""
        return self._calls.pop(name, None)

    def _note(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name in self._calls or cls.__module__.startswith("torch."):
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self._calls[name] = CustomCall(cls, tuple(map(_copy, args)), dict(kwargs))


def _copy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)
