"""Recognize the class of a value, whatever its metaclass answers.

NOTE [Classes by identity]
A set of classes asks the class that it looks for for its hash, and then, as a tuple does at once, whether it is equal.
A class of the program may have a metaclass that counts that, or cannot do it. So classes are compared by identity:
`is_one_of`, or where it has to be fast, `id(type(value))` in the `identities` of classes that stay loaded.
"""

from collections.abc import Callable
from typing import Any

_module: Callable[[type], object] = type.__dict__["__module__"].__get__  # whatever a metaclass answers


def identities(*classes: type) -> frozenset[int]:
    """Return what is looked up instead of a class."""
    return frozenset(map(id, classes))


def is_one_of(value: object, kinds: tuple[type, ...]) -> bool:
    """Return whether a value is of one of some classes, and of no subclass."""
    kind = type(value)
    for one in kinds:  # noqa: SIM110  # it runs for each module and node: a generator would cost three times as much
        if kind is one:
            return True
    return False


def number_of(value: Any) -> float | None:
    """Return an int or a float; of a subclass what it holds, by none of the methods it may have."""
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)
    return int.__int__(value) if issubclass(kind, int) else None


def module_of(kind: type) -> str:
    """Return the module of a class; nothing if a program has put something else there, as None."""
    module = _module(kind)
    return module if type(module) is str else ""
