"""Ignore the warnings of what we run, without effect on those of the program.

NOTE [Warnings shown once]
Python remembers at each place which warnings it has shown there, and forgets all of it once the filters are changed.
`warnings.catch_warnings` changes them, so after it the program would show again what it shows once. Here the list of
filters is exchanged without telling Python; and what runs meanwhile, such as torch's own `catch_warnings`, does not
make Python forget either.
"""

import warnings
from typing import Any

_IGNORE_ALL = ("ignore", None, Warning, None, 0)
_CHANGES = ("_filters_mutated", "_filters_mutated_lock_held")  # the names differ between releases of Python
_WARNINGS: Any = warnings  # the module, even if the program puts another in its place


class Silence:
    """Shows no warning. Use it as a context manager."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        """Exchange the filters."""
        names = ("filters", *(name for name in _CHANGES if hasattr(_WARNINGS, name)))
        self._before: dict[str, Any] = {name: getattr(_WARNINGS, name) for name in names}
        for name in names[1:]:
            setattr(_WARNINGS, name, _do_nothing)
        _WARNINGS.filters = [_IGNORE_ALL]

    def __exit__(self, *_error: object) -> None:
        """Put back what was there."""
        for name, value in self._before.items():
            setattr(_WARNINGS, name, value)


def _do_nothing() -> None:
    pass
