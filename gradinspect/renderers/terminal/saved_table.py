"""The saved-attribute table for a terminal, and as JSON.

The table never exceeds the given width: the least important columns are narrowed, then dropped, and the last line
says which were dropped.
"""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.renderers.data.json import json_text
from gradinspect.units import escape_control, format_bytes, format_count, format_held

COLUMNS = ("#", "node", "attribute", "value", "bytes", "status", "origin", "module", "source")
RIGHT_ALIGNED = frozenset({"#", "bytes"})
GAP = "  "


CUT_AT_START = frozenset({"attribute", "origin", "module", "source"})  # their ends say more

# Applied in order until the table fits: narrow a column to this many cells, or drop it (0).
NARROWING = (
    ("source", 16), ("module", 12), ("source", 0), ("module", 0), ("origin", 20), ("value", 16), ("origin", 10),
    ("node", 20), ("attribute", 20), ("origin", 0), ("status", 14), ("node", 16), ("attribute", 16), ("value", 13),
    ("node", 12), ("attribute", 12), ("node", 10), ("value", 10), ("status", 10), ("status", 0),
    ("attribute", 10), ("node", 6), ("attribute", 6), ("value", 4), ("node", 0), ("bytes", 0),
)  # fmt: skip
WIDENING = ("value", "attribute", "node", "status", "origin")  # which columns get the room of a dropped one


def render_saved_table(rows: Sequence[SavedRow], *, width: int = 80) -> str:
    """Write the rows in columns, then a line with the total."""
    cells = [_cells(row) for row in rows]
    natural = [max(map(cell_len, column)) for column in zip(COLUMNS, *cells, strict=True)]
    widths = _fit_widths(dict(zip(COLUMNS, natural, strict=True)), width)
    lines = [_line(line, widths) for line in (COLUMNS, *cells)]
    lines.extend(_total_lines(rows, width))
    left_out = [column for column in COLUMNS if column not in widths]
    if left_out:
        lines.append(f"not shown at this width: {', '.join(left_out)}")
    return "".join(f"{line}\n" for line in lines)


def _cells(row: SavedRow) -> tuple[str, ...]:
    return tuple(
        escape_control(cell)
        for cell in (
            str(row.node),
            row.node_name,
            row.attribute,
            row.value,
            format_bytes(row.num_bytes) if row.num_bytes else "",
            status_text(row),
            " ".join(filter(None, (row.origin, row.origin_name))),
            row.module or "",
            row.source or "",
        )
    )


def status_text(row: SavedRow) -> str:
    """Describe the status of a saved value: `modified: at version 3, expected 2`, `as #3`."""
    status = f"{row.status}: {row.status_detail}" if row.status == "modified" and row.status_detail else row.status
    if row.status == "packed":
        status = f"packed {row.status_detail}".rstrip()
    if row.shared_with is None:
        return status or ""
    shared = f"as #{row.shared_with}"
    return shared if status in {None, "live"} else f"{status}, {shared}"


def _fit_widths(natural: dict[str, int], width: int) -> dict[str, int]:
    widths = dict(natural)
    for column, narrow in NARROWING:
        excess = _table_width(widths) - width
        if excess <= 0:
            break
        if narrow == 0:
            del widths[column]
        else:
            widths[column] = min(widths[column], max(narrow, widths[column] - excess))
    for column in WIDENING:
        spare = max(width - _table_width(widths), 0)
        if column in widths:
            widths[column] = min(natural[column], widths[column] + spare)
    return widths


def _table_width(widths: dict[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _line(cells: Sequence[str], widths: dict[str, int]) -> str:
    parts = []
    for column, cell in zip(COLUMNS, cells, strict=True):
        if column in widths:
            text = _cut(cell, widths[column], at_start=column in CUT_AT_START)
            padding = " " * (widths[column] - cell_len(text))
            parts.append(padding + text if column in RIGHT_ALIGNED else text + padding)
    return GAP.join(parts).rstrip()


def _cut(text: str, width: int, *, at_start: bool) -> str:
    if cell_len(text) <= width:
        return text
    if at_start:
        return f"…{set_cell_size(text[::-1], width - 1)[::-1].lstrip()}"
    return f"{set_cell_size(text, width - 1).rstrip()}…"


def _total_lines(rows: Sequence[SavedRow], width: int) -> tuple[str, ...]:
    held = format_held(sum(row.own_bytes for row in rows), sum(row.weight_bytes for row in rows))
    count = format_count(len(rows), "row")
    rule = "each storage counted once; as #n: shared with #n"
    line = f"{count}, {held}: {rule}"
    return (line,) if cell_len(line) <= width else (f"{count}, {held}", rule)


def render_saved_json(rows: Sequence[SavedRow]) -> str:
    """Write the rows as a JSON array, one row per line, with every field of `SavedRow`."""
    lines = ",\n".join(json_text({name: getattr(row, name) for name in row.__struct_fields__}) for row in rows)
    return f"[\n{lines}\n]\n" if lines else "[]\n"
