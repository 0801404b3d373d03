"""Tables for machines: the columns of each are declared once, and written in every format.

What comes in: rows, and the `Table` that says what each column shows of one. What goes out: CSV, JSON or Markdown.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from gradinspect.graph import Record
from gradinspect.renderers.data.csv import render_csv
from gradinspect.renderers.data.json import json_text, plain, render_json
from gradinspect.renderers.data.markdown import render_markdown

Row = TypeVar("Row")
TableFormat: TypeAlias = Literal["csv", "json", "markdown"]
Columns: TypeAlias = Mapping[str, Callable[[Row], object]]


class Table(NamedTuple, Generic[Row]):
    """What the columns show of a row: a value for CSV and JSON, and text that is Markdown already."""

    columns: Columns[Row]
    markdown: Mapping[str, Callable[[Row], str]] = {}


def fields(*names: str) -> Columns[Any]:
    """Declare columns that show attributes of a row, under their names."""
    return {name: attrgetter(name) for name in names}


def all_fields(record: type[Record]) -> Columns[Any]:
    """Declare one column for each field of a record."""
    return fields(*record.__struct_fields__)


def figures(result: Row, columns: Columns[Row]) -> dict[str, object]:
    """Return what columns show of one result, by their names."""
    return {name: value(result) for name, value in columns.items()}


def render_figures(result: Row, columns: Columns[Row]) -> str:
    """Write one result as JSON."""
    return render_json(figures(result, columns))


def render_table(table: Table[Row], rows: Iterable[Row], table_format: TableFormat) -> str:
    """Write a table; in JSON it is an array with one row per line."""
    match table_format:
        case "csv":
            return render_csv(tuple(table.columns), ([value(row) for value in table.columns.values()] for row in rows))
        case "json":
            lines = ",\n".join(json_text(plain(figures(row, table.columns))) for row in rows)
            return f"[\n{lines}\n]\n" if lines else "[]\n"
        case "markdown":
            cells = ([text(row) for text in table.markdown.values()] for row in rows)
            return render_markdown(tuple(table.markdown), cells)
