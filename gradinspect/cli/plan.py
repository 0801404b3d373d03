"""`gradinspect plan`: what to change so that a training step fits into memory."""

import sys
from dataclasses import replace
from typing import Annotated, Literal

import typer

from gradinspect.cli.fit import VALUES_HINT, check_can_run_again, check_hint, size_of
from gradinspect.cli.options.help import OUTPUT, RUN
from gradinspect.cli.options.request import OF_THE_GRAPH, takes_source
from gradinspect.cli.output.printing import can_print_unicode, output_console, print_lines, print_text
from gradinspect.errors import FOUND_SOMETHING
from gradinspect.request import Request

# ruff: noqa: PLC0415  # what --help need not wait for


@takes_source(without={*OF_THE_GRAPH, "backward", "grad", "root", "goes_on"})
def plan(
    request: Request,
    *,
    fit: Annotated[str, typer.Option("--fit", metavar="SIZE", help="Available memory, such as 24GiB.")],
    tries: Annotated[
        bool, typer.Option("--try", help="Run the cheapest plan with values: its peak, time and gradients.")
    ] = False,
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="Training steps to watch.")] = 2,
    hint: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Answer what reads a value, such as 'if loss > 3'.", rich_help_panel=RUN),
    ] = None,
    output_format: Annotated[
        Literal["text", "json"],
        typer.Option("--format", metavar="KIND", help="Print text or json.", rich_help_panel=OUTPUT),
    ] = "text",
) -> int:
    """Find what to checkpoint so that training steps fit into memory.

    gradinspect plan train.py --fit 24GiB

    gradinspect plan train.py --fit 24GiB --try
    """
    limit = size_of(f"--fit {fit}", fit)
    check_hint(hint)
    check_can_run_again(request, "plan")
    asked = replace(request, fake=True, answers_reads=True, hint=hint, values_hint=VALUES_HINT)

    from gradinspect.cli.running.planning import find_plan
    from gradinspect.renderers.data.plan import render_plan_json
    from gradinspect.renderers.terminal.plan import PlanPage

    found = find_plan(asked, limit, steps, tries=tries)
    if output_format == "json":
        print_text(render_plan_json(found))
    else:
        console = output_console()
        print_lines(PlanPage(width=console.width, unicode=can_print_unicode(console)).lines(found))
    for failure in found.failures:
        print(f"note: {failure}", file=sys.stderr)
    return 0 if found.fits else FOUND_SOMETHING
