r"""CSV for spreadsheets and data frames.

NOTE [Cells for spreadsheets]
A spreadsheet evaluates a cell that begins with `=`, `+`, `-` or `@`, and a terminal obeys control characters. Text
cells are written so that neither can happen, and so that the original text can be recovered:

- a backslash is doubled, and unprintable characters become their Python escape: `\n`, `\x1b`, `\u202e`, `\udcff`;
- a cell that would then begin with one of `= + - @`, their full-width forms or a quote `'` gets a leading quote, which
  spreadsheets read as "this is text".

To decode a cell, drop the leading quote, if any, then replace the escapes. Numbers stay numbers, including -1. Line
endings follow RFC 4180.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from gradinspect.units import escape_control

FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")  # including full-width forms
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


def render_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a header and rows in the format of RFC 4180."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: object) -> object:
    """Write one cell: NOTE [Cells for spreadsheets]."""
    if not isinstance(value, str):
        return value
    text = escape_control(value.replace("\\", r"\\"))
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(text) else text
