"""The file formats, one row each. Renderers are imported when needed, so that --help can list the formats."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradinspect.graph import Graph
    from gradinspect.renderers.picture.plan.parts import DrawOptions


class FileContent(NamedTuple):
    """A file's bytes, and notes for the user."""

    content: bytes
    notes: tuple[str, ...] = ()


class Format(NamedTuple):
    """One format."""

    suffix: str
    help: str
    renderer: str  # "module:function" below this package, from a `Graph` and `DrawOptions` to `FileContent`
    holds_all: bool = False  # always the whole graph, regardless of a focus


PAGE = Format(".html", "a page for a browser", "html.page:page_file")
FORMATS = (
    PAGE,
    Format(".svg", "a picture", "picture.picture:svg_file"),
    Format(".png", "a picture in pixels", "picture.picture:png_file"),
    Format(".pdf", "a picture for print", "picture.picture:pdf_file"),
    Format(".dot", "Graphviz source", "picture.picture:dot_file"),
    Format(".mmd", "a Mermaid flowchart", "data.graphs.mermaid:mermaid_file"),
    Format(".graphml", "every node and edge", "data.graphs.graph_xml:graphml_file", holds_all=True),
    Format(".gexf", "every node and edge", "data.graphs.graph_xml:gexf_file", holds_all=True),
    Format(
        ".speedscope.json",
        "bytes held, for speedscope.app",
        "data.graphs.speedscope:speedscope_file",
        holds_all=True,
    ),
    Format(
        ".modelexplorer.json",
        "for Model Explorer",
        "data.graphs.model_explorer:model_explorer_file",
        holds_all=True,
    ),
    Format(".json", "a capture file", "data.graphs.whole_graph:capture_file", holds_all=True),
    Format(".json.gz", "a packed one", "data.graphs.whole_graph:packed_capture_file", holds_all=True),
    Format(".csv", "one row per node", "data.graphs.whole_graph:nodes_file", holds_all=True),
)


def format_of(file_name: str) -> Format | None:
    """Return the format for the suffix of a file name, or None."""
    return next((row for row in FORMATS if file_name.lower().endswith(row.suffix)), None)


def suffixes() -> str:
    """List all suffixes, as help and errors show them."""
    return " ".join(row.suffix for row in FORMATS)


def load_renderer(row: Format) -> "Callable[[Graph, DrawOptions], FileContent]":
    """Import what makes the bytes of a file: before a program runs that could interfere."""
    module, _, function = row.renderer.partition(":")
    renderer: Callable[[Graph, DrawOptions], FileContent] = getattr(
        importlib.import_module(f"{__package__}.{module}"), function
    )
    return renderer


def render_file(row: Format, graph: "Graph", options: "DrawOptions") -> FileContent:
    """Make the bytes of a file."""
    return load_renderer(row)(graph, options)
