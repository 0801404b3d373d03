"""Tables in GitHub-flavored Markdown."""

from collections.abc import Iterable, Sequence

from gradinspect.analyses.memory.saved_rows import SavedRow
from gradinspect.units import escape_control, format_bytes


def render_saved_markdown(rows: Iterable[SavedRow]) -> str:
    """Write the saved-attribute table as Markdown."""
    headers = ("node", "class", "attribute", "value", "bytes", "shared with", "status", "origin", "module", "source")
    return table(headers, (_cells(row) for row in rows))


def _cells(row: SavedRow) -> tuple[str, ...]:
    status = f"{row.status}: {row.status_detail}" if row.status_detail else row.status
    origin = " ".join(filter(None, (row.origin, code(row.origin_name or ""))))
    return (
        str(row.node),
        code(row.node_name),
        code(row.attribute),
        code(row.value),
        "" if row.num_bytes is None else format_bytes(row.num_bytes),
        "" if row.shared_with is None else str(row.shared_with),
        code(status or "") if row.status_detail else status or "",
        origin,
        code(row.module_name or ""),
        code(row.source or ""),
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table whose cells are already Markdown."""
    lines = (headers, ["---"] * len(headers), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(text: str) -> str:
    """Escape text from the user's program so that it cannot act as markup or end a cell.

    Plain text becomes a code span. Not every parser can escape a backtick or a bar inside one, so such text is written
    with character references.
    """
    text = escape_control(text)
    if not text or not {"`", "|", "\\"}.intersection(text):
        return f"`{text}`" if text.strip() else ""
    safe = "".join(char if char.isalnum() or char == " " or ord(char) > 127 else f"&#{ord(char)};" for char in text)
    return f"<code>{safe}</code>"
