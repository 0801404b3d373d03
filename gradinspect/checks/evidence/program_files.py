"""The program's own files that findings name, or that have ignore comments, and what one line of them makes."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradinspect.checks.findings import Finding, ProgramFile
from gradinspect.checks.ignore_comments import program_file
from gradinspect.graph import Frame
from gradinspect.recording.frames import FrameTable, is_own_file, short_file_name
from gradinspect.recording.source_structure import makers_of, own_sources
from gradinspect.recording.source_text import line_of, lines_of


def program_files(frames: FrameTable, findings: Sequence[Finding], base_folder: Path) -> Iterator[ProgramFile]:
    """Read the files of a program as Python read them.

    Args:
        frames: The lines that were seen to run.
        findings: What names lines.
        base_folder: Files below it are named relative to it.
    """
    named = defaultdict[str, set[int]](set)
    for finding in findings:
        for place in finding.places:
            named[place.file].add(place.line)
    seen = defaultdict[str, set[int]](set)
    for file, line in frames.lines():
        seen[file].add(line)
    known: set[str] = set()
    for file in (*seen, *_imported()):
        name = short_file_name(file, base_folder) if is_own_file(file) else ""
        if not name or name in known:
            continue
        known.add(name)
        path = "" if file.startswith("<") else os.path.abspath(file)  # noqa: PTH100  # as in short_file_name
        found = program_file(name, path, lines_of(file), seen.get(file, ()), named.get(name, ()))
        if found.ignores or name in named:
            yield found


def _imported() -> Iterator[str]:
    """Yield the files of all modules; what a program put into sys.modules may be anything."""
    for module in list(sys.modules.values()):
        try:
            file = module.__dict__.get("__file__")
        except Exception:  # noqa: S112  # its own code
            continue
        if isinstance(file, str) and file.endswith(".py"):  # others are binary
            yield file


def maker_line(class_name: str, base_folder: Path) -> Frame | None:
    """Return the one line of the program's own files that makes a module of a class; None if there are several.

    Args:
        class_name: Its last name: "LayerNorm".
        base_folder: Files below it are named relative to it.
    """
    if not class_name:
        return None
    found = [(file, line) for file in own_sources(class_name) for line in makers_of(file, class_name)]
    if len(found) != 1:
        return None
    ((file, line),) = found
    return Frame(file=short_file_name(file, base_folder), line=line, code=line_of(file, line))
