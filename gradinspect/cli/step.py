"""`gradinspect step`: step through backward."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from gradinspect.analyses.gradients.stepping import SteppingOutcome
from gradinspect.catalog import load_catalog
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.user_source import source_reader
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.debugger import Debugger
from gradinspect.cli.output.files import of_this_rank
from gradinspect.cli.output.printing import is_silent
from gradinspect.cli.output.step_report import ReportWriter, check_report
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.questions import Question, observed_by
from gradinspect.cli.running.rank_results import result_of_graph_in
from gradinspect.errors import GradInspectError
from gradinspect.renderers.terminal.nodes.steps import StepPage
from gradinspect.request import Request
from gradinspect.user_files import read_text


@takes_source(reads_captures=False)
def step(
    request: Request,
    *,
    grad_output: Annotated[
        Literal["ones", "random", "rows"] | None,
        typer.Option(metavar="KIND", help="Without a backward(): start with ones, random or rows."),
    ] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read commands from a file, one per line.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all steps to a .md or .html file, no prompt.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Step through backward node by node: gradients, values, formulas.

    gradinspect step train.py

    gradinspect step train.py --report steps.html
    """
    target = None if report is None else of_this_rank(report)
    if target is not None:
        check_report(target, force=force)
    if report is not None and script is not None:
        raise GradInspectError("'--report' and '--script' cannot be combined.", "Remove one of them.")
    if request.root is not None and request.at is None and request.backward is None and request.grad is None:
        request = replace(request, at="end")  # the program's own backward begins where it begins
    catalog = load_catalog()
    commands = () if is_silent() else None if script is None else _commands(script)
    listener = (
        Debugger(catalog, source_reader(request), commands)
        if target is None
        else ReportWriter(catalog, target, force=force)
    )

    def finish(outcome: SteppingOutcome) -> None:
        page = terminal_page(StepPage)
        if isinstance(listener, ReportWriter):
            listener.write(outcome)
        elif listener.problem is not None:
            raise listener.problem
        print_lines(page.outcome(outcome))

    question = Question[SteppingOutcome](
        observe=observed_by("observers.stepping.stepping_observer.SteppingObserver", listener, grad_output),
        a_capture_cannot="be stepped through",
        summarize=result_of_graph_in,
        needs_backward=False,
    )
    report_on(request, question, finish)


def _commands(path: Path) -> list[str]:
    try:
        return read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not text" if isinstance(error, UnicodeDecodeError) else f"cannot be read: {error.strerror}"
        raise GradInspectError(
            f"The command file '{path}' {reason}.", "Give a file with one command per line."
        ) from None
