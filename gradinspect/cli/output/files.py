"""Write a graph to files; the suffix determines the format."""

import functools
import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gradinspect.analyses.explain.explainer import explainer
from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.cli.options.user_source import source_reader
from gradinspect.cli.output.console import working
from gradinspect.cli.output.printing import ReaderLeft, is_silent, is_watched, print_message
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.facts import PageFacts, page_facts
from gradinspect.renderers.formats import Format, format_of, load_renderer, render_file, suffixes
from gradinspect.renderers.picture.plan.parts import DrawOptions
from gradinspect.request import Request
from gradinspect.storage import write_file
from gradinspect.units import format_bytes

RANK = "{rank}"


class Target(NamedTuple):
    """A file to write."""

    path: Path
    format: Format


def parse_targets(paths: Sequence[Path], *, force: bool) -> list[Target]:
    """Determine each file's format, before anything runs. See `of_this_rank`.

    Raises:
        GradInspectError: A suffix is unknown, a folder is missing or not writable, a file exists or is given twice.
    """
    return [parse_target(path, force=force) for path in own_paths(paths)]


def own_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the files that this rank writes.

    Raises:
        GradInspectError: A file is given twice.
    """
    found = [own for path in paths if (own := of_this_rank(path)) is not None]
    for position, path in enumerate(found):
        if path in found[:position]:
            raise GradInspectError(f"The file '{path}' is given twice.", "Give each output file once.")
    return found


def of_this_rank(path: Path) -> Path | None:
    """Return the file that this rank writes: `{rank}` in a name is its number; without it, only rank 0 writes."""
    if RANK in str(path):
        return Path(str(path).replace(RANK, os.environ.get("RANK", "0")))
    return None if is_silent() else path


def parse_target(path: Path, *, force: bool = False) -> Target:
    """Determine the format of one file.

    Raises:
        GradInspectError: As in `parse_targets`.
    """
    found = format_of(path.name)
    if found is None:
        raise GradInspectError(f"The format of '{path}' is unknown.", f"Supported extensions: {suffixes()}.")
    check_target(path, force=force)
    load_renderer(found)
    return Target(path, found)


def suffix_of(path: Path, supported: Collection[str]) -> str:
    """Return the one of these suffixes that a file has.

    Raises:
        GradInspectError: It has none of them.
    """
    name = path.name.lower()
    found = next((suffix for suffix in supported if name.endswith(suffix) and name != suffix), None)
    if found is None:
        raise GradInspectError(f"The format of '{path}' is unknown.", f"Supported extensions: {' '.join(supported)}.")
    return found


def check_target(path: Path, *, force: bool) -> None:
    """Check that a file can be written.

    Raises:
        GradInspectError: Its folder is missing or not writable, or the file exists.
    """
    try:
        is_there, has_folder = path.exists(), path.parent.is_dir()
    except PermissionError:  # a parent folder may not be readable
        raise _closed(path.parent) from None
    except OSError as error:  # a name that is too long
        raise GradInspectError(f"'{path}' cannot be written: {error.strerror}.", "Choose another name.") from None
    if is_there and path.is_dir():
        raise GradInspectError(f"'{path}' is a directory.", "Give a file name.")
    if not has_folder:
        raise GradInspectError(
            f"The directory '{path.parent}' does not exist.", "Create it, or choose another directory."
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _closed(path.parent)
    if is_there and not force:
        raise GradInspectError(f"The file '{path}' exists.", "Use --force to overwrite it.")


def _closed(folder: Path) -> GradInspectError:
    return GradInspectError(f"The directory '{folder}' is not writable.", "Choose another directory.")


def write_targets(
    graph: Graph,
    targets: Sequence[Target],
    *,
    request: Request,
    focus: Focus,
    force: bool,
    **drawing: Any,  # noqa: ANN401
) -> None:
    """Write each file, and report it.

    Args:
        graph: What to write.
        targets: The files and their formats.
        request: What was recorded.
        focus: The part of the graph to draw; data files contain all of it.
        force: Overwrite existing files.
        **drawing: Fields of `DrawOptions`.
    """
    if not targets:
        return
    part, cut = focus_graph(graph, focus)
    has_page = any(target.format.suffix == ".html" for target in targets)
    options = DrawOptions(
        **{"fit_to": "screen", **drawing}, cut=cut, facts=_facts_of(part, request) if has_page else PageFacts()
    )
    for path, row in targets:
        with working(f"Writing {path.name}"):
            content, notes = render_file(row, graph if row.holds_all else part, options)
        if row.holds_all and cut is not None:
            notes = (*notes, "contains the whole graph, not only the part in focus")
        write_content(path, content, notes, force=force)
        if row.suffix in {".json", ".json.gz"} and is_watched():
            print_message(f"Next: gradinspect memory {shlex.quote(str(path))}")


def _facts_of(graph: Graph, request: Request) -> PageFacts:
    return page_facts(graph, explainer(), functools.cache(source_reader(request)))


def write_content(path: Path, content: bytes, notes: Sequence[str] = (), *, force: bool) -> None:
    """Write one file, and report it."""
    try:
        write_file(path, content, force=force)
    except BrokenPipeError:
        raise ReaderLeft from None
    for note in notes:
        print_message(f"{path.name}: {note}")
    print_message(f"Wrote {path}" + (f" ({format_bytes(len(content))})" if is_watched() else ""))
