"""`load` and `save`: a graph to a file, and back."""

import os
from pathlib import Path
from typing import Literal, TypeAlias

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.formats import format_of, render_file, suffixes
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.storage import read_graph, write_file

FitTo: TypeAlias = Literal["screen", "a4", "slide", "none"]
ColorBy: TypeAlias = Literal["grad", "bytes", "flops", "dtype", "device", "module", "file"]


def load(path: str | os.PathLike[str]) -> Graph:
    """Read a graph that was saved as a capture file. Needs no torch; nothing in the file is executed.

    Args:
        path: A `.json` or `.json.gz` file, written by `save` or by `gradinspect export`.

    Raises:
        GradInspectError: It cannot be read, or is not a valid capture file.
    """
    return read_graph(path)


def save(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    depth: int | None = None,
    fit_to: FitTo = "screen",
    color_by: ColorBy | None = None,
) -> None:
    """Write a graph to a file, whole or not at all; its suffix determines the format.

    `.json` and `.json.gz` can be loaded again; `.svg`, `.png`, `.pdf` and `.dot` are pictures, `.html` is a page to
    browse, `.csv` has one row per node. Every other suffix in the help of `export` is for another tool.

    Args:
        graph: What to write.
        path: The file.
        overwrite: Replace an existing file.
        depth: In a picture, expand modules this deep; by default, as far as there is room.
        fit_to: The room of a picture: `"screen"`, `"a4"`, `"slide"`, or `"none"` for any size.
        color_by: In a picture, what the fill of a box shows: `"bytes"` are those held for backward.

    Raises:
        GradInspectError: The suffix is unknown, the file exists, or it cannot be written.
    """
    target = Path(path)
    row = format_of(target.name)
    if row is None:
        raise GradInspectError(f"The format of '{target}' is unknown.", f"Supported extensions: {suffixes()}.")
    if target.is_file() and not overwrite:
        raise GradInspectError(f"The file '{target}' exists.", "Pass overwrite=True to replace it.")
    content = render_file(row, graph, DrawOptions(depth=depth, fit_to=fit_to, color_by=color_by)).content
    write_file(target, content, force=overwrite)
