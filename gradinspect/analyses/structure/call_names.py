"""Names of module calls that can be read alone: `layer4.1`, never `1`; a fold of blocks is `transformer.h.0-11`.

What comes in: dotted paths. What goes out: names.
"""

import re
from collections.abc import Sequence
from typing import Final

from gradinspect.units import parse_whole

OUTERMOST = "model"  # without a variable of the user
INDEX: Final = re.compile(r"(?<![^.])[0-9]{1,18}(?![^.])")  # a whole part of a path; more digits are a name
_INDICES: Final = re.compile(r"[\d*,-]+")  # also of a pattern: `*`, `0-3`, `0,2`
MAX_INDICES = 4  # listed one by one


def short_name(path: str, parent: str | None, model: str = OUTERMOST) -> str:
    """Name a module relative to its caller; an index keeps the name of what it is an index of.

    Args:
        path: Of the module; "" for the outermost.
        parent: The path of its caller.
        model: What to call the outermost.
    """
    parts = path.split(".")
    start = len(parent.split(".")) if parent and path.startswith(f"{parent}.") else 0
    while start and parts[start].isdigit():
        start -= 1
    return shown_path(".".join(parts[start:]), model)


def shown_path(path: str, model: str = OUTERMOST) -> str:
    """Write a path, or a pattern like `*.attn`, so that no index stands without what it is an index of: `model.3`."""
    if not path:
        return model
    return f"{model}.{path}" if _INDICES.fullmatch(path.partition(".")[0]) else path


def without_wrappers(path: str) -> str:
    """Return a path without the parts that torch.compile adds around a module, `_orig_mod`."""
    return ".".join(part for part in path.split(".") if part != "_orig_mod")


def name_inside(name: str, path: str | None) -> str:
    """Name a parameter relative to a module that is named beside it: `weight` inside of `layer4.1.conv1`."""
    return name.removeprefix(f"{path}.") if path else name


def fold_name(names: Sequence[str]) -> str | None:
    """Name blocks that differ in their index: `h.0-11`, or `0, 2, 4` if others are between; None if they do not."""
    stems = {name.rpartition(".")[0] for name in names}
    lasts = [name.rpartition(".")[2] for name in names]
    indices = sorted({index for last in lasts if (index := parse_whole(last)) is not None})
    if len(stems) != 1 or len(set(names)) < 2 or set(map(str, indices)) != set(lasts):
        return None
    (stem,) = stems
    return f"{stem}.{_listed(indices)}" if stem else _listed(indices)


def _listed(indices: Sequence[int]) -> str:
    if indices[-1] - indices[0] == len(indices) - 1:
        return f"{indices[0]}-{indices[-1]}"
    if len(indices) <= MAX_INDICES:
        return ", ".join(map(str, indices))
    return f"{indices[0]}, {indices[1]} to {indices[-1]}"
