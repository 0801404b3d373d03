"""Write the memory of whole steps to files: its record, its curve, or the page."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gradinspect.analyses.memory.step import StepMemory
from gradinspect.cli.output.files import check_target, own_paths, suffix_of, write_content
from gradinspect.renderers.html.step_page import render_step_page
from gradinspect.renderers.picture.step_curve import render_step_curves
from gradinspect.storage.step_memory import encode_step_memory

SUFFIXES: Final = (".html", ".svg", ".json", ".json.gz")


class StepTarget(NamedTuple):
    """A file to write."""

    path: Path
    suffix: str


def parse_step_targets(paths: Sequence[Path], *, force: bool) -> list[StepTarget]:
    """Determine each file's format, before anything runs.

    Raises:
        GradInspectError: As in `own_paths`, `suffix_of` and `check_target`.
    """
    targets = [StepTarget(path, suffix_of(path, SUFFIXES)) for path in own_paths(paths)]
    for target in targets:
        check_target(target.path, force=force)
    if targets:
        importlib.import_module("gradinspect.renderers.html.step_page")  # before a program runs that could interfere
    return targets


def write_step_targets(memory: StepMemory, targets: Sequence[StepTarget], limit: int | None, *, force: bool) -> None:
    """Write each file, and report it."""
    for path, suffix in targets:
        write_content(path, _content(memory, suffix, limit), force=force)


def _content(memory: StepMemory, suffix: str, limit: int | None) -> bytes:
    match suffix:
        case ".html":
            return render_step_page(memory, limit).encode()
        case ".svg":
            return render_step_curves(memory, limit).encode()
    return encode_step_memory(memory, compressed=suffix == ".json.gz")
