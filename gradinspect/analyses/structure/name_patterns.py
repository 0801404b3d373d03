"""Names chosen by a shell pattern, with the nearest ones suggested when none matches."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from gradinspect.errors import GradInspectError
from gradinspect.units import brief

MAX_LISTED = 15  # names that a hint lists when none is near


def matching_names(pattern: str, names: Collection[str], noun: str) -> frozenset[str]:
    """Return the names that a pattern such as `h.*.attn` or `saved_tensors[1]` matches.

    Raises:
        GradInspectError: None does; the hint says which come nearest.
    """
    found = frozenset(name for name in names if name == pattern or fnmatchcase(name, pattern))
    if not found:
        raise no_such_name(pattern, names, noun)
    return found


def no_such_name(name: str, names: Collection[str], noun: str) -> GradInspectError:
    """Make the error for a name that is not there."""
    by_lower_case = {known.lower(): known for known in sorted(names)}
    wanted = name.strip("*?").lower()
    near = difflib.get_close_matches(wanted, by_lower_case, n=3, cutoff=0.4)
    near = near or [known for known in by_lower_case if wanted in known][:3]
    if near:
        hint = f"The nearest: {_quoted(by_lower_case[known] for known in near)}."
    elif len(names) <= MAX_LISTED:
        hint = f"There are: {_quoted(sorted(names))}." if names else f"This graph has no {noun}."
    else:
        hint = ""
    return GradInspectError(f'No {noun} matches "{brief(name)}".', hint)


def containing_paths(path: str) -> Iterator[str]:
    """Yield a module's path and those of the modules around it: `h.0.attn`, `h.0`, `h`, and the outermost's."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{brief(name)}"' for name in names)
