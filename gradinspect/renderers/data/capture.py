"""A capture file: all of a graph, to be read again."""

from typing import TYPE_CHECKING

from gradinspect.graph import Graph
from gradinspect.renderers.formats import FileContent
from gradinspect.storage import encode_graph

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions


def capture_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .json file."""
    return FileContent(encode_graph(graph, compressed=False))


def packed_capture_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .json.gz file."""
    return FileContent(encode_graph(graph, compressed=True))
