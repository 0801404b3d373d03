"""Writing a graph to files: the suffix of each decides its format."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradinspect.cli.printing import print_message, working
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.csv_table import render_nodes_csv
from gradinspect.renderers.drawing_parts import DrawOptions
from gradinspect.renderers.picture import Picture, PictureFormat, draw
from gradinspect.storage import encode_graph, write_file


class Target(NamedTuple):
    """A file to write."""

    path: Path
    suffix: str


def _draws(picture_format: PictureFormat) -> Callable[[Graph, DrawOptions], Picture]:
    return lambda graph, options: draw(graph, picture_format, options)


FORMATS: dict[str, Callable[[Graph, DrawOptions], Picture]] = {
    ".json.gz": lambda graph, _: Picture(encode_graph(graph, compressed=True), ()),
    ".json": lambda graph, _: Picture(encode_graph(graph, compressed=False), ()),
    ".csv": lambda graph, _: Picture(render_nodes_csv(graph).encode(), ()),
    ".svg": _draws("svg"),
    ".png": _draws("png"),
    ".pdf": _draws("pdf"),
    ".dot": _draws("dot"),
}


def parse_targets(paths: Sequence[Path], *, force: bool) -> list[Target]:
    """Find each file's format, before anything is run.

    Raises:
        GradInspectError: A suffix is unknown, a folder is missing, or a file is there already.
    """
    return [_parse_target(path, force=force) for path in paths]


def _parse_target(path: Path, *, force: bool) -> Target:
    suffix = next((suffix for suffix in FORMATS if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        known = ", ".join(sorted(FORMATS))
        raise GradInspectError(f"The format of '{path}' is unknown.", f"End its name in one of: {known}.")
    if not path.parent.is_dir():
        raise GradInspectError(f"There is no folder '{path.parent}'.", "Make it, or choose another place.")
    if path.exists() and not force:
        raise GradInspectError(f"The file '{path}' exists.", "Use --force to overwrite it.")
    return Target(path, suffix)


def write_targets(graph: Graph, targets: Sequence[Target], options: DrawOptions, *, force: bool) -> None:
    """Write each file, and say so."""
    for path, suffix in targets:
        with working(f"Making {path.name}"):
            content, notes = FORMATS[suffix](graph, options)
        write_file(path, content, force=force)
        for note in notes:
            print_message(f"{path.name}: {note}")
        print_message(f"Wrote {path}")
