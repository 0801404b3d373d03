"""Write the sizes that were tried to files: their curve."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gradinspect.analyses.planning.size_pairs import PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.cli.output.files import check_target, own_paths, write_content
from gradinspect.errors import GradInspectError
from gradinspect.renderers.picture.size_curve import render_pair_curve, render_size_curve

SUFFIX: Final = ".svg"


def parse_size_targets(paths: Sequence[Path], *, force: bool) -> list[Path]:
    """Check the files, before anything runs.

    Raises:
        GradInspectError: As in `own_paths` and `check_target`, or one of them keeps a single run.
    """
    targets = own_paths(paths)
    for path in targets:
        if not path.name.lower().endswith(SUFFIX):
            raise GradInspectError(
                f"'-o {path}' keeps one run, and '--search' makes many.",
                "Write their picture: -o sizes.svg, or one size: run it without --search.",
            )
        check_target(path, force=force)
    if targets:
        importlib.import_module("gradinspect.renderers.picture.text_width")  # before a program that could interfere
    return targets


def write_size_targets(table: SizeTable | PairTable, targets: Sequence[Path], *, force: bool) -> None:
    """Write each file, and report it."""
    for path in targets:
        picture = render_pair_curve(table) if isinstance(table, PairTable) else render_size_curve(table)
        write_content(path, picture.encode(), force=force)
