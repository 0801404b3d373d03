r"""Escape strings for Graphviz: quoted strings, HTML-like labels, attributes, statements.

What comes in: strings, some of them from the user's program. What goes out: DOT that no string can break out of.

NOTE [Two readers]
Graphviz parses a label twice: as DOT or as HTML, then for escapes such as `\N` (the node's name) and entities such as
`&lt;`. So a backslash is doubled and an ampersand becomes `&amp;` in both kinds of strings.
"""

import re
from collections.abc import Sequence

from gradinspect.analyses.structure.name_folding import elements_together
from gradinspect.units import escape_control

MAX_LABEL = 60  # characters; a longer one makes a box wider than a page
MAX_TOOLTIP_LINE = 160
ELLIPSIS = "…"
MAX_NAMES = 2  # of arguments on one edge
WORD_JOINER = "\u2060"
HTML_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\\": "\\\\"}
QUOTED_ESCAPES = {"&": "&amp;", '"': '\\"', "\\": "\\\\"}
HTML_TABLE = str.maketrans(HTML_ESCAPES)
QUOTED_TABLE = str.maketrans(QUOTED_ESCAPES)
TOOLTIP_TABLE = str.maketrans(QUOTED_ESCAPES | {"\\": f"\\\\{WORD_JOINER}"})


def shorten(text: str, limit: int = MAX_LABEL) -> str:
    """Keep both ends of a long text; escape control characters, and show an empty text as two quotes."""
    text = escape_control(text[: 4 * limit] + text[-limit:] if len(text) > 5 * limit else text)
    if not text.strip():
        return "''"
    if len(text) <= limit:
        return text
    tail = limit // 2
    return f"{text[: limit - tail - 1]}{ELLIPSIS}{text[-tail:]}"


def html(text: str, limit: int = MAX_LABEL) -> str:
    """Escape a text for use inside an HTML-like label."""
    written = shorten(text, limit).translate(HTML_TABLE)
    return f"&#93;{written[1:]}" if written.startswith("]") else written  # dot rejects it as the first character


def small(markup: str, color: str, points: int = 8) -> str:
    """Make markup small. Graphviz rejects empty elements."""
    return markup and f'<FONT POINT-SIZE="{points}" COLOR="{color}">{markup}</FONT>'


def without_colors(markup: str) -> str:
    """Leave the color of all text to the box. Quotes in the user's text are entities, so only ours match."""
    return re.sub(r' COLOR="#\w+"', "", markup)


def boxed(lines: Sequence[str], below: Sequence[str] = (), **values: str | float) -> str:
    """Stack lines in a table, because a label holds either text or a table; below them are rows of cells."""
    written = list(filter(None, lines))
    written += (f'<TABLE BORDER="0" CELLSPACING="1" CELLPADDING="1"><TR>{row}</TR></TABLE>' for row in below)
    if any("<TABLE" in line for line in written):
        rows = "".join(f"<TR><TD{_alignment(line)}>{line}</TD></TR>" for line in written)
        label = f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0">{rows}</TABLE>'
    else:
        label = "<BR/>".join(written)
    return attributes(label=f"<{label}>", **values)


def _alignment(line: str) -> str:
    return ' ALIGN="LEFT"' if line.startswith("<TABLE") else ""


def quoted(text: str) -> str:
    """Write a text as a quoted string."""
    return f'"{shorten(text).translate(QUOTED_TABLE)}"'


def join_names(names: Sequence[str]) -> str:
    """Join names of arguments: `tensors[1-198]` for the elements of one list, "" if there is no short way."""
    return elements_together(names) or (", ".join(names) if len(names) <= MAX_NAMES and all(names) else "")


def address(url: str) -> str:
    """Write a URL as a quoted string, never shortened."""
    return f'"{escape_control(url).translate(QUOTED_TABLE)}"'


def tooltip(*lines: str) -> str:
    """Write lines as one quoted string for a tooltip: NOTE [Two readers]."""
    return '"' + r"\n".join(shorten(line, MAX_TOOLTIP_LINE).translate(TOOLTIP_TABLE) for line in lines) + '"'


def attributes(**values: str | float) -> str:
    """Write an attribute list. Values that begin with `"` or `<` are already escaped."""
    pairs = (f"{name}={_value(value)}" for name, value in values.items())
    return f"[{' '.join(pairs)}]"


def _value(value: str | float) -> str:
    return value if isinstance(value, str) and value.startswith(('"', "<")) else f'"{value}"'
