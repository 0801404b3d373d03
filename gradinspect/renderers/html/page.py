"""A graph as one self-contained HTML file.

What comes in: a `Graph` and options. What goes out: the page. Its scripts and styles are the files in `html/`,
concatenated in the order of `SCRIPTS`; each may use what earlier ones define.

The page's policy forbids every request, and every script and style except its own two, which it lists by hash.
"""

import hashlib
import io
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from gradinspect.graph import Graph
from gradinspect.renderers.formats import FileContent
from gradinspect.renderers.html.data import page_json
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.units import escape_control

SCRIPTS = (
    "dom", "graph", "drawing/scopes", "drawing/sizes", "drawing/layout", "drawing/packing", "drawing/nesting",
    "drawing/drawing", "drawing/viewport", "drawing/minimap", "panels/panel", "panels/search", "drawing/colors",
    "drawing/highlight", "drawing/legend", "panels/table", "panels/memory", "panels/views", "panels/saving",
    "panels/printing", "panels/copying", "panels/keys", "main",
)  # fmt: skip


def render_html(graph: Graph, options: DrawOptions | None = None) -> str:
    """Write the page."""
    return "".join(_pieces(graph, options or DrawOptions()))


def _pieces(graph: Graph, options: DrawOptions) -> Iterator[str]:
    title = f"{graph.source} · gradinspect"
    return page_document(title, "page.css", "body.html", SCRIPTS, page_json(graph, options))


def page_document(
    title: str, style_file: str, body_file: str, scripts: Sequence[str], content: Iterable[str]
) -> Iterator[str]:
    """Put a page together, piece after piece.

    Args:
        title: Of the window; any text.
        style_file: Its file in `html/`.
        body_file: Likewise.
        scripts: Names of files in `html/`, in order.
        content: What the page shows, as JSON that cannot end its element: `harmless`; in pieces.
    """
    style = _read(style_file)
    script = "'use strict';\n(() => {\n" + "".join(_read(f"{name}.js") for name in scripts) + "})();\n"
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    shown = escape(escape_control(title)).encode(errors="backslashreplace").decode()
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{style}</style>\n</head>\n<body>\n{_read(body_file)}"
        '<script type="application/json" id="graph">'
    )
    yield from content
    yield f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


def _read(name: str) -> str:
    return (files("gradinspect.renderers") / "html" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def page_file(graph: Graph, options: DrawOptions) -> FileContent:
    """Make an .html file."""
    written = io.BytesIO()
    for piece in _pieces(graph, options):
        written.write(piece.encode())
    return FileContent(written.getvalue())
