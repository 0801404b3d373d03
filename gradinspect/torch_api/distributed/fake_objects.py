"""Python objects that ranks send each other, where only one rank is there: all ranks have those of this one."""

from collections.abc import Callable
from typing import Any

import torch


class NoSuchRankError(RuntimeError):
    """A program needs what another rank would have sent; the message begins with what it does."""


def object_patches(rank: int) -> dict[str, Callable[[Any], Any]]:
    """Return what replaces each function of `torch.distributed` that sends objects, as patches take it."""
    objects = _Objects(rank)
    names = [name for name in dir(objects) if not name.startswith("_") and hasattr(torch.distributed, name)]
    return {name: lambda _original, name=name: getattr(objects, name) for name in names}  # type: ignore[misc]


class _Objects:
    """Answers for one rank; the methods have the names and arguments of torch's functions."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def all_gather_object(self, object_list: list[Any], obj: Any, *_args: Any, **_kwargs: Any) -> None:
        object_list[:] = [obj] * len(object_list)

    def gather_object(self, obj: Any, object_gather_list: list[Any] | None = None, *_args: Any, **_kwargs: Any) -> None:
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def broadcast_object_list(self, object_list: list[Any], src: int | None = None, *_args: Any, **kwargs: Any) -> None:
        source = kwargs.get("group_src", 0) if src is None else src
        if source != self._rank and any(item is None for item in object_list):
            raise NoSuchRankError(f"waits for objects of rank {source}")

    def scatter_object_list(
        self,
        scatter_object_output_list: list[Any],
        scatter_object_input_list: list[Any] | None = None,
        src: int | None = 0,
        *_args: Any,
        **_kwargs: Any,
    ) -> None:
        if not scatter_object_input_list:
            raise NoSuchRankError(f"waits for objects of rank {src}")
        place = self._rank % len(scatter_object_input_list)
        scatter_object_output_list[0] = scatter_object_input_list[place]

    def send_object_list(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def recv_object_list(self, _object_list: list[Any], src: int | None = None, *_args: Any, **kwargs: Any) -> None:
        source = kwargs.get("group_src") if src is None else src
        raise NoSuchRankError(f"waits for objects of {'another rank' if source is None else f'rank {source}'}")
