"""The formats of files: one line each, from the suffix to the function that makes the bytes."""

from collections.abc import Callable

from gradinspect.graph import Graph
from gradinspect.renderers.data.csv import render_nodes_csv
from gradinspect.renderers.html.page import render_html
from gradinspect.renderers.picture.picture import Picture, PictureFormat, draw
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.storage import encode_graph

__all__ = ["DATA_FORMATS", "FORMATS", "DrawOptions"]


def _draws(picture_format: PictureFormat) -> Callable[[Graph, DrawOptions], Picture]:
    return lambda graph, options: draw(graph, picture_format, options)


DATA_FORMATS = frozenset({".json.gz", ".json", ".csv"})  # all of the graph, however it is drawn elsewhere
FORMATS: dict[str, Callable[[Graph, DrawOptions], Picture]] = {
    ".json.gz": lambda graph, _: Picture(encode_graph(graph, compressed=True), ()),
    ".json": lambda graph, _: Picture(encode_graph(graph, compressed=False), ()),
    ".csv": lambda graph, _: Picture(render_nodes_csv(graph).encode(), ()),
    ".html": lambda graph, options: Picture(render_html(graph, options).encode(), ()),
    ".svg": _draws("svg"),
    ".png": _draws("png"),
    ".pdf": _draws("pdf"),
    ".dot": _draws("dot"),
}
