"""What records can do besides holding data.

NOTE [Methods of records]
A record is data, and does not know who shows it. Each of its methods is one line, which asks for a function by name.
`gradinspect/__init__.py` says where these functions are; Python runs it before any of our modules, so this also holds
for a record that was unpickled. They are imported on first use.

This file imports nothing, because it is loaded with the package: NOTE [Two sets of modules].
"""

TYPE_CHECKING = False  # `typing` may be a file of the user's
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_finders: "list[Callable[[str], Callable[..., Any]]]" = []


def find_methods_with(finder: "Callable[[str], Callable[..., Any]]") -> None:
    """Say how the functions behind the methods of records are found by name."""
    _finders[:] = [finder]


def method(name: str) -> "Callable[..., Any]":
    """Return the function behind a method of records. NOTE [Methods of records]."""
    return _finders[0](name)


class Shown:
    """What a record can do at a prompt and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Describe it in one line."""
        return str(method("line_of")(self))

    def __str__(self) -> str:
        """Write the report that the command line prints."""
        return str(method("page_of")(self))

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return str(method("fragment_of")(self))

    def _repr_mimebundle_(self, **_wanted: object) -> dict[str, str]:
        """Show it in a notebook, and as text where there is no HTML."""
        return {"text/html": self._repr_html_(), "text/plain": str(self)}
