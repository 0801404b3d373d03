"""`gradinspect fit`: will a whole training step fit into memory?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from gradinspect.analyses.memory.step import StepMemory, fits
from gradinspect.analyses.planning.size_pairs import PairTable
from gradinspect.analyses.planning.sizes import SizeTable
from gradinspect.analyses.selection.rows import RowChoice
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import check_no_run_option, takes_source
from gradinspect.cli.options.rows import takes_rows
from gradinspect.cli.options.shared import TextOrJson
from gradinspect.cli.options.whole_steps import (
    SIZES_HINT,
    VALUES_HINT,
    Hint,
    NumSteps,
    check_can_run_again,
    check_hint,
    is_cuda,
    size_of,
)
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.output.size_files import parse_size_targets, write_size_targets
from gradinspect.cli.output.step_files import SUFFIXES, parse_step_targets, write_step_targets
from gradinspect.cli.running.size_search import search_pair, search_size
from gradinspect.cli.running.values_first import report_step_memory
from gradinspect.errors import FOUND_SOMETHING, GradInspectError
from gradinspect.renderers.data.plan import PAIRS, SIZES
from gradinspect.renderers.data.step_memory import render_step_memory_json
from gradinspect.renderers.data.table import render_figures
from gradinspect.renderers.terminal.memory.sizes import PairPage, SizePage
from gradinspect.renderers.terminal.memory.step import StepMemoryPage
from gradinspect.request import Request
from gradinspect.source import CaptureFile, Expression
from gradinspect.storage.step_memory import read_step_memory


@takes_source()
@takes_rows
def fit(  # noqa: PLR0913  # one option for each way to cut the tables
    request: Request,
    *,
    rows: RowChoice,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Available memory, such as 24GiB; exits 1 above it."),
    ] = None,
    steps: NumSteps = 2,
    search: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Find the largest {NAME} that fits, or pairs a,b, or world-size."),
    ] = None,
    by: Annotated[
        Literal["module", "line", "storage", "phase", "kind"],
        typer.Option(metavar="KIND", help="By module, line, storage, phase or kind."),
    ] = "module",
    real: Annotated[bool, typer.Option("--real", help="Run with values, and measure the allocator.")] = False,
    hint: Hint = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME",
            help="Count in the blocks of this device: cuda. With --real: run a callable there.",
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", metavar="FILE", help=f"Also write a file, repeatable: {' '.join(SUFFIXES)}", rich_help_panel=OUTPUT
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.", rich_help_panel=OUTPUT)] = False,
    output_format: TextOrJson = "text",
) -> int:
    """Find the peak of memory of whole training steps.

    gradinspect fit train.py

    gradinspect fit train.py --limit 24GiB --by line

    gradinspect fit train.py -o step.html -o step.json.gz
    """
    available = None if limit is None else size_of(f"--limit {limit}", limit)
    check_hint(hint, real=real)
    moves = real and isinstance(request.source, Expression)
    asked = replace(
        request,
        device=device if moves else None,
        fake=not real,
        keeps_files=not real,
        answers_reads=not real,
        hint=hint,
        values_hint=VALUES_HINT,
        sizes_hint=SIZES_HINT,
        counts_as_cuda=not moves and is_cuda(device, measured_by="--real" if real else None),
    )
    if search is not None and not isinstance(request.source, CaptureFile):
        return _search(asked, search, available, steps, _Written(output or [], output_format, force))
    targets = parse_step_targets(output or [], force=force)
    has_room: bool | None = None

    def report(memory: StepMemory) -> None:
        nonlocal has_room
        has_room = fits(memory, available)
        try:
            if output_format == "json":
                print_text(render_step_memory_json(memory, available, by, rows))
            else:
                print_lines(terminal_page(StepMemoryPage).lines(memory, available, by, rows))
        finally:  # also if the reader of standard output has left
            write_step_targets(memory, targets, available, force=force)

    if isinstance(request.source, CaptureFile):
        given = {
            "--device": device is not None,
            "--real": real,
            "--hint": hint is not None,
            "--search": search is not None,
        }
        check_no_run_option(given, request.label, "a file")
        report(read_step_memory(request.source.path))
    else:
        report_step_memory(asked, steps, report)
    return FOUND_SOMETHING if has_room is False else 0


class _Written(NamedTuple):
    """Where results go."""

    files: Sequence[Path]
    kind: Literal["text", "json"]
    overwrites: bool


def _search(request: Request, searched: str, limit: int | None, num_steps: int, written: _Written) -> int:
    """Print what each size needs, and the largest that fits; or that of one size for each of another.

    Raises:
        GradInspectError: The program cannot be run with one size after the other.
    """
    if not request.fake:
        raise GradInspectError("'--search' runs many sizes on fake tensors, and --real has values.", "Remove --real.")
    check_can_run_again(request, "--search")
    targets = parse_size_targets(written.files, force=written.overwrites)
    table = _searched(request, searched, limit, num_steps)
    if isinstance(table, PairTable):
        in_json, page = render_figures(table, PAIRS), terminal_page(PairPage).lines(table)
        is_found = table.has_fitting
    else:
        in_json, page = render_figures(table, SIZES), terminal_page(SizePage).lines(table)
        is_found = table.best is not None
    try:
        if written.kind == "json":
            print_text(in_json)
        else:
            print_lines(page)
    finally:  # also if the reader of standard output has left
        write_size_targets(table, targets, force=written.overwrites)
    return 0 if limit is None or is_found else FOUND_SOMETHING


def _searched(request: Request, searched: str, limit: int | None, num_steps: int) -> SizeTable | PairTable:
    first, *others = searched.split(",")
    if len(others) > 1 or first in others:
        raise GradInspectError(f"'--search {searched}' is not one name, or two.", "Write --search batch,seq.")
    if others:
        return search_pair(request, (first, others[0]), limit, num_steps)
    return search_size(request, first, limit, num_steps)
