"""Match names by a shell pattern; if none matches, suggest the closest ones."""

import difflib
from collections.abc import Collection, Iterable, Iterator

from gradinspect.errors import GradInspectError
from gradinspect.units import brief, name_matches

MAX_LISTED = 15  # names listed in a hint if none is close


def matching_names(pattern: str, names: Collection[str], noun: str) -> frozenset[str]:
    """Return the names that a pattern such as `h.*.attn` or `saved_tensors[1]` matches.

    If none does, those whose last parts it matches: `attn.c_proj` finds `transformer.h.0.attn.c_proj`, and the same in
    the other blocks.

    Raises:
        GradInspectError: No name matches; the hint lists the closest ones.
    """
    found = frozenset(name for name in names if name_matches(name, pattern))
    if not found:
        found = frozenset(name for name in names if name_matches(name, f"*.{pattern}"))
    if not found:
        raise no_such_name(pattern, names, noun)
    return found


def no_such_name(name: str, names: Collection[str], noun: str) -> GradInspectError:
    """Make the error for an unknown name."""
    return GradInspectError(f'No {noun} matches "{brief(name)}".', closest_names(name, names, noun))


def closest_names(name: str, names: Collection[str], noun: str) -> str:
    """Say which names are like one that is not there, or which there are."""
    by_lower_case = {known.lower(): known for known in sorted(names)}
    wanted = name.strip("*?").lower()
    near = difflib.get_close_matches(wanted, by_lower_case, n=3, cutoff=0.4)
    near = near or [known for known in by_lower_case if wanted in known][:3]
    if near:
        return f"Closest matches: {_quoted(by_lower_case[known] for known in near)}."
    if len(names) <= MAX_LISTED:
        return f"Available: {_quoted(sorted(names))}." if names else f"This graph has no {noun}."
    return "Give one that trace shows, or a pattern: 'h.*.attn'."


def containing_paths(path: str) -> Iterator[str]:
    """Yield a module's path and those of its parents: `h.0.attn`, `h.0`, `h`, and the outermost module's."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{brief(name)}"' for name in names)
