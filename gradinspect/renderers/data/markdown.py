"""Tables in GitHub-flavored Markdown."""

from collections.abc import Iterable, Sequence

from gradinspect.units import escape_control


def render_markdown(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
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
