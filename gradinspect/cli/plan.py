"""`gradinspect plan`: what to change so that a training step fits into memory."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.shared import TextOrJson
from gradinspect.cli.options.whole_steps import (
    Hint,
    NumSteps,
    check_can_run_again,
    check_hint,
    is_cuda,
    seconds_of,
    size_of,
)
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running.planning import find_plan
from gradinspect.errors import FOUND_SOMETHING
from gradinspect.renderers.data.plan import render_plan_json
from gradinspect.renderers.terminal.memory.plan import PlanPage
from gradinspect.request import Request

_VALUES_HINT = "Give the number to answer with: --hint 1."
_SIZES_HINT = "Give it a fixed size, or measure the program as it is: fit --real."


@takes_source(reads_captures=False)
def plan(  # noqa: PLR0913  # one option for each kind of plan
    request: Request,
    *,
    fit: Annotated[str, typer.Option("--fit", metavar="SIZE", help="Available memory, such as 24GiB.")],
    tries: Annotated[
        bool, typer.Option("--try", help="Run the cheapest plan with values: its peak, time and gradients.")
    ] = False,
    rounds: Annotated[
        bool, typer.Option("--inexact", help="Also try what rounds gradients otherwise; else only if nothing fits.")
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Also try smaller batches of the size NAME, or NAME=64 for {NAME}."),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", metavar="SECONDS", help="Try no more plans after this time: 60s.")
    ] = "120s",
    steps: NumSteps = 2,
    hint: Hint = None,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="Count in the blocks of this device, and offload: cuda."),
    ] = None,
    output_format: TextOrJson = "text",
) -> int:
    """Find what to checkpoint so that training steps fit into memory.

    gradinspect plan train.py --fit 24GiB

    gradinspect plan train.py --fit 24GiB --try
    """
    limit = size_of(f"--fit {fit}", fit)
    check_hint(hint)
    check_can_run_again(request, "plan")
    asked = replace(
        request,
        fake=True,
        keeps_files=True,
        answers_reads=True,
        hint=hint,
        values_hint=_VALUES_HINT,
        sizes_hint=_SIZES_HINT,
        counts_as_cuda=is_cuda(device, measured_by="--try" if tries else None),
    )

    found = find_plan(
        asked, limit, steps, budget=seconds_of(f"--budget {budget}", budget), tries=tries, rounds=rounds, split=split
    )
    if output_format == "json":
        print_text(render_plan_json(found))
    else:
        print_lines(terminal_page(PlanPage).lines(found))
    for failure in found.failures:
        print(f"note: {failure}", file=sys.stderr)
    return 0 if found.fits else FOUND_SOMETHING
