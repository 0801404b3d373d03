"""The arguments of a call of torch, which are given by place or by name."""

from collections.abc import Mapping, Sequence
from typing import Any


def argument(args: Sequence[Any], kwargs: Mapping[str, Any], place: int, name: str) -> Any:
    """Return an argument of a call; None if it was not given."""
    return kwargs.get(name, args[place] if len(args) > place else None)
