"""The rows that --top, --module, --where and --sort choose, in any table.

A table names its fields once, each with a function from a row to its values: a condition compares them, and rows are
sorted by them.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from gradinspect.analyses.selection.conditions import Value, holds, parse_condition
from gradinspect.analyses.selection.name_patterns import containing_paths, matching_names
from gradinspect.errors import GradInspectError
from gradinspect.graph import Record
from gradinspect.units import brief

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, Callable[[T], Sequence[Value]]]
IN_ORDER: Final = "graph"  # the order in which a table has its rows


class RowChoice(Record, frozen=True):
    """The options that choose rows; None: not given."""

    top: int | None = None
    module: str | None = None
    where: str | None = None
    sort: str | None = None

    @property
    def is_part(self) -> bool:
        """Whether rows are left out by what they are."""
        return self.module is not None or self.where is not None


ALL_ROWS: Final = RowChoice()


def chosen_rows(rows: Sequence[T], fields: Fields[T], choice: RowChoice, modules: Collection[str]) -> tuple[T, ...]:
    """Keep the rows that --module and --where choose, sorted by --sort.

    Args:
        rows: All rows.
        fields: What they can be chosen and sorted by. "module" has the path of a row's module.
        choice: The options.
        modules: All paths that --module may mean.

    Raises:
        GradInspectError: A field is unknown, no module matches, or the condition cannot be read.
    """
    found: Sequence[T] = rows
    if choice.module is not None:
        paths = {path for module in modules for path in containing_paths(module)}
        wanted = matching_names(choice.module, paths, "module")
        found = [row for row in found if any(_is_inside(path, wanted) for path in fields["module"](row))]
    if choice.where is not None:
        condition = parse_condition(choice.where, fields)
        found = [row for row in found if holds(condition, lambda field, row=row: fields[field](row))]  # type: ignore[misc]  # mypy cannot infer
    return sorted_rows(found, fields, choice.sort)


def _is_inside(path: Value, wanted: frozenset[str]) -> bool:
    return isinstance(path, str) and not wanted.isdisjoint(containing_paths(path))


def sorted_rows(rows: Sequence[T], fields: Fields[T], sort: str | None) -> tuple[T, ...]:
    """Sort rows by a field: numbers from the largest, texts from A; rows without a value come last.

    Raises:
        GradInspectError: There is no such field.
    """
    if sort in {None, IN_ORDER}:
        return tuple(rows)
    check_sort(sort, fields)
    read = fields[str(sort)]
    return tuple(sorted(rows, key=lambda row: min(map(_sort_key, read(row)), default=(3, 0.0, ""))))


def check_sort(sort: str | None, fields: Collection[str]) -> None:
    """Check that a table can be sorted so.

    Raises:
        GradInspectError: It has no such field.
    """
    if sort is not None and sort != IN_ORDER and sort not in fields:
        available = ", ".join([IN_ORDER, *sorted(fields)])
        raise GradInspectError(f"The rows cannot be sorted by '{brief(sort)}'.", f"Available: {available}.")


def _sort_key(value: Value) -> tuple[int, float, str]:
    match value:
        case None:
            return 3, 0.0, ""
        case str():
            return 2, 0.0, value
        case _:
            return (0, 0.0, "") if math.isnan(value) else (1, -value, "")
