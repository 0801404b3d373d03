"""`gradinspect grads`: the gradients of a backward call."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gradinspect.cli import questions
from gradinspect.cli.files import check_target, write_content
from gradinspect.cli.help import OUTPUT
from gradinspect.cli.printing import can_print_unicode, output_console, print_lines, print_text
from gradinspect.cli.reporting import report_on
from gradinspect.cli.request import OF_THE_GRAPH, takes_source
from gradinspect.errors import GradInspectError
from gradinspect.request import Request

if TYPE_CHECKING:
    from rich.text import Text

    from gradinspect.analyses.gradients.steps import GradientSteps
    from gradinspect.analyses.gradients.timeline import Timeline
    from gradinspect.graph import Graph

# ruff: noqa: PLC0415  # what --help need not wait for

By = Literal["module", "parameter", "node"]
MAX_ROWS = 40
MAX_SLOWEST = 15


@takes_source(without=OF_THE_GRAPH)
def grads(  # noqa: PLR0913  # one option for each way to look at gradients
    request: Request,
    *,
    by: Annotated[By | None, typer.Option(metavar="KIND", help="Only modules, parameters or nodes.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All rows.")] = False,
    steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Watch N backward calls and compare the norms."),
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Time each node; writes a .json for Perfetto.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.", rich_help_panel=OUTPUT)] = False,
    output_format: Annotated[
        Literal["text", "csv", "json"],
        typer.Option("--format", metavar="KIND", help="Print text, csv or json.", rich_help_panel=OUTPUT),
    ] = "text",
) -> None:
    """Show the gradient at each module, parameter and node.

    gradinspect grads train.py

    gradinspect grads train.py --by node

    gradinspect grads train.py --steps 5

    gradinspect grads train.py --timeline backward.json
    """
    if timeline is not None:
        if by is not None or steps is not None or output_format != "text":
            raise GradInspectError(
                f"'--timeline {timeline}' only times the nodes and cannot be combined with --by, --steps or --format.",
                "Remove it, or the other options.",
            )
        _time(request, timeline, full=full, force=force)
        return

    def report(graph: "Graph") -> None:
        if output_format == "text":
            print_lines(_page(graph, by, full=full))
        else:
            print_text(_data(graph, output_format))

    def report_steps(found: "GradientSteps") -> None:
        if output_format == "text":
            print_lines(_steps_page(found, by, full=full))
        else:
            print_text(_steps_data(found, output_format))

    if steps is None:
        report_on(request, questions.gradients(), report)
    else:
        report_on(request, questions.gradient_steps(steps), report_steps)


def _time(request: Request, file: Path, *, full: bool, force: bool) -> None:
    if file.suffix.lower() != ".json":
        raise GradInspectError(f"The format of '{file}' is unknown.", "Supported extensions: .json.")
    check_target(file, force=force)

    def report(timeline: "Timeline") -> None:
        from gradinspect.renderers.data.chrome_trace import render_chrome_trace
        from gradinspect.renderers.terminal.timeline import TimelinePage

        console = output_console()
        page = TimelinePage(width=console.width, unicode=can_print_unicode(console))
        print_lines(page.lines(timeline, None if full else MAX_SLOWEST))
        write_content(file, render_chrome_trace(timeline).encode(), force=force)

    report_on(request, questions.timeline(), report)


def _data(graph: "Graph", output_format: Literal["csv", "json"]) -> str:
    from gradinspect.analyses.gradients.observed import gradient_notes, parameter_rows
    from gradinspect.analyses.summary import describe_capture
    from gradinspect.renderers.terminal.gradients import render_gradients_csv, render_gradients_json

    if output_format == "csv":
        return render_gradients_csv(graph)
    return render_gradients_json(graph, describe_capture(graph), gradient_notes(graph), parameter_rows(graph))


def _steps_data(found: "GradientSteps", output_format: Literal["csv", "json"]) -> str:
    from gradinspect.renderers.terminal.gradient_steps import render_steps_csv, render_steps_json

    return render_steps_csv(found) if output_format == "csv" else render_steps_json(found)


def _page(graph: "Graph", by: By | None, *, full: bool) -> "Iterator[Text]":
    """Yield the head, the findings, and the tables."""
    from rich.text import Text

    from gradinspect.analyses.gradients.observed import flow_rows, gradient_notes, gradients_of, parameter_rows
    from gradinspect.renderers.terminal.gradients import GradientsPage
    from gradinspect.units import format_count

    console = output_console()
    page = GradientsPage(width=console.width, unicode=can_print_unicode(console))
    max_rows = None if full else MAX_ROWS
    found = gradients_of(graph)
    loss = "" if found.loss is None else f", loss {found.loss:.4g}"
    yield from page.capture_lines(graph)
    yield Text(f"{len(found.nodes):,} of {format_count(len(graph.nodes), 'node')} ran{loss}")
    yield from page.notes(gradient_notes(graph))
    modules = flow_rows(graph, 1_000_000 if full else MAX_ROWS)
    if by in {None, "module"} and (modules or by is not None):
        yield Text()
        yield from page.flow(modules, max_rows)
    if by in {None, "parameter"}:
        yield Text()
        yield from page.parameters(parameter_rows(graph), max_rows)
    if by == "node":
        yield Text()
        yield from page.nodes(graph, max_rows)


def _steps_page(found: "GradientSteps", by: By | None, *, full: bool) -> "Iterator[Text]":
    """Yield the head, the findings, how each norm changed, and a table of the last call if requested."""
    from rich.text import Text

    from gradinspect.analyses.gradients.observed import flow_rows
    from gradinspect.analyses.gradients.steps import moves, notes_of_all
    from gradinspect.renderers.terminal.gradient_steps import StepsPage

    console = output_console()
    page = StepsPage(width=console.width, unicode=can_print_unicode(console))
    max_rows = None if full else MAX_ROWS
    yield from page.head(found)
    yield from page.notes(notes_of_all(found.steps))
    yield Text()
    yield from page.moves(found.steps, moves(found.steps), max_rows)
    if by is not None:
        yield Text()
        yield page.title(f"last call: {found.steps[-1].captured_at}")
    match by:
        case "module":
            yield from page.flow(flow_rows(found.graph, 1_000_000 if full else MAX_ROWS), max_rows)
        case "parameter":
            yield from page.parameters(found.steps[-1].parameters, max_rows)
        case "node":
            yield from page.nodes(found.graph, max_rows)
