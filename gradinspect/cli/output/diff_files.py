"""Write a comparison of two graphs to files: a page with both side by side, or a picture of both as one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gradinspect.analyses.diff.records import GraphDiff
from gradinspect.analyses.diff.union import unite_graphs
from gradinspect.cli.output.console import working
from gradinspect.cli.output.files import Target, parse_targets, write_content
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.diff_words import Side
from gradinspect.renderers.formats import FileContent, render_file
from gradinspect.renderers.html.sides_page import render_sides
from gradinspect.renderers.picture.plan.parts import DrawOptions

SUFFIXES: Final = (".html", ".svg", ".png", ".pdf", ".dot")


class DiffFile(NamedTuple):
    """What the files show."""

    before: Graph
    after: Graph
    diff: GraphDiff
    sides: Sequence[Side]
    failures: Sequence[str]


def parse_diff_targets(paths: Sequence[Path], *, force: bool) -> list[Target]:
    """Determine the formats of the files.

    Raises:
        GradInspectError: As in `parse_targets`, or a format is neither a page nor a picture.
    """
    targets = parse_targets(paths, force=force)
    other = next((target.path for target in targets if target.format.suffix not in SUFFIXES), None)
    if other is not None:
        raise GradInspectError(f"'{other}' is neither a page nor a picture.",
                               f"Supported extensions: {' '.join(SUFFIXES)}.")  # fmt: skip
    return targets


def write_diff_targets(shown: DiffFile, targets: Sequence[Target], *, force: bool) -> None:
    """Write each file, and report it."""
    for target in targets:
        with working(f"Writing {target.path.name}"):
            content, notes = _page(shown) if target.format.suffix == ".html" else _picture(shown, target)
        write_content(target.path, content, notes, force=force)


def _page(shown: DiffFile) -> FileContent:
    return FileContent(render_sides(*shown).encode())


def _picture(shown: DiffFile, target: Target) -> FileContent:
    """Draw both graphs as one, with colors for what changed."""
    union = unite_graphs(shown.before, shown.after, shown.diff)
    return render_file(target.format, union.graph, DrawOptions(statuses=union.statuses, fit_to="screen"))
