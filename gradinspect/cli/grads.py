"""`gradinspect grads`: the gradients of a backward call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.text import Text

from gradinspect.analyses.gradients.buckets import BucketReport
from gradinspect.analyses.gradients.choice import (
    chosen_flow,
    chosen_moves,
    chosen_nodes_that_ran,
    chosen_parameters,
    chosen_slices,
)
from gradinspect.analyses.gradients.folded import (
    as_deep_as_fits,
    folded_flow,
    folded_parameters,
    unfolded_flow,
    unfolded_parameters,
)
from gradinspect.analyses.gradients.observed import (
    compiled_notes,
    fall_of,
    flow_rows,
    gradient_notes,
    gradients_of,
    nodes_by_order,
    parameter_rows,
    unmeasured_notes,
)
from gradinspect.analyses.gradients.steps import GradientSteps, moves, notes_of_all, unmeasured_in_all
from gradinspect.analyses.gradients.timeline import Timeline, slowest_first
from gradinspect.analyses.selection.rows import RowChoice
from gradinspect.analyses.structure.name_folding import MAX_ROWS
from gradinspect.analyses.summary import describe_capture, passed_over
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.rows import takes_rows
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.files import check_target, of_this_rank, write_content
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.questions import Question, at_first_backward
from gradinspect.cli.running.rank_results import result_of_buckets, result_of_graph_in
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.gradients import (
    GRADIENTS,
    STEPS,
    gradient_rows,
    render_buckets_json,
    render_gradients_json,
    render_steps_json,
    step_rows,
)
from gradinspect.renderers.data.graphs.chrome_trace import render_chrome_trace
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.gradients.buckets import BucketsPage
from gradinspect.renderers.terminal.gradients.call import GradientsPage
from gradinspect.renderers.terminal.gradients.several_calls import StepsPage
from gradinspect.renderers.terminal.gradients.timeline import TimelinePage
from gradinspect.request import Request
from gradinspect.units import format_count

By = Literal["module", "parameter", "node"]
MAX_SLOWEST = 15
BUCKETS: Final = Question[BucketReport](
    observe=at_first_backward("observers.gradients.buckets_observer.BucketsObserver"),
    a_capture_cannot="show buckets",
    summarize=result_of_buckets,
)
TIMELINE: Final = Question[Timeline](
    observe=at_first_backward("observers.gradients.timeline_observer.TimelineObserver"),
    a_capture_cannot="be timed",
    summarize=result_of_graph_in,
)


@takes_source()
@takes_rows
def grads(  # noqa: PLR0913  # one option for each way to look at gradients
    request: Request,
    *,
    rows: RowChoice,
    by: Annotated[By | None, typer.Option(metavar="KIND", help="Only modules, parameters or nodes.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All rows.")] = False,
    steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Watch N backward calls and compare the norms."),
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Time each node; writes a .json for Perfetto.")
    ] = None,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Show which gradient holds up which bucket of DistributedDataParallel.")
    ] = False,
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

    gradinspect grads train.py --ranks
    """
    if ranks:
        _check_alone("--ranks", "shows buckets", is_alone=(by or steps or timeline) is None and output_format != "csv")
        _show_buckets(request, is_text=output_format == "text", full=full)
        return
    if timeline is not None:
        is_alone = (by or steps) is None and output_format == "text"
        _check_alone(f"--timeline {timeline}", "times the nodes", is_alone=is_alone)
        _time(request, timeline, rows, full=full, force=force)
        return

    def report(graph: Graph) -> None:
        if output_format == "text":
            print_lines(_page(graph, by, rows, full=full))
        else:
            print_text(_data(graph, rows, output_format))

    def report_steps(found: GradientSteps) -> None:
        if output_format == "text":
            print_lines(_steps_page(found, by, rows, full=full))
        else:
            print_text(_steps_data(found, output_format))

    if steps is None:
        report_on(request, questions.gradients(), report)
    else:
        report_on(request, _gradient_steps(steps), report_steps)


def _gradient_steps(num_steps: int) -> Question[GradientSteps]:
    """Ask for the gradients of several consecutive backward calls."""
    return Question(
        observe=at_first_backward("observers.gradients.gradient_steps_observer.GradientStepsObserver", num_steps),
        a_capture_cannot=f"show {num_steps} steps",
        summarize=result_of_graph_in,
    )


def _check_alone(option: str, does: str, *, is_alone: bool) -> None:
    if not is_alone:
        others = " or ".join(", ".join(
            name for name in ("--by", "--steps", "--timeline", "--format") if not option.startswith(name)
        ).rsplit(", ", 1))  # fmt: skip
        raise GradInspectError(f"'{option}' only {does} and cannot be combined with {others}.",
                               "Remove it, or the other options.")  # fmt: skip


def _show_buckets(request: Request, *, is_text: bool, full: bool) -> None:
    def report(found: BucketReport) -> None:
        if not found.models:
            raise GradInspectError(
                f"'{found.graph.source}' fills no buckets: no backward call reduced the gradients of a "
                "DistributedDataParallel.",
                "Remove --ranks, or wrap the model.",
            )
        if is_text:
            print_lines(terminal_page(BucketsPage).lines(found, None if full else MAX_ROWS))
        else:
            print_text(render_buckets_json(found))

    report_on(request, BUCKETS, report)


def _time(request: Request, file: Path, rows: RowChoice, *, full: bool, force: bool) -> None:
    if file.suffix.lower() != ".json":
        raise GradInspectError(f"The format of '{file}' is unknown.", "Supported extensions: .json.")
    target = of_this_rank(file)
    if target is not None:
        check_target(target, force=force)

    def report(timeline: Timeline) -> None:
        page = terminal_page(TimelinePage)
        slices = slowest_first(timeline) if rows.sort is None else timeline.slices
        found = chosen_slices(timeline.graph, slices, rows)
        try:
            print_lines(page.lines(timeline, found, _max_rows(rows, full=full, default=MAX_SLOWEST)))
        finally:  # also if the reader of standard output has left
            if target is not None:
                write_content(target, render_chrome_trace(timeline).encode(), force=force)

    report_on(request, TIMELINE, report)


def _max_rows(rows: RowChoice, *, full: bool, default: int = MAX_ROWS) -> int | None:
    return rows.top if rows.top is not None or full else default


def _data(graph: Graph, rows: RowChoice, output_format: Literal["csv", "json"]) -> str:
    nodes = chosen_nodes_that_ran(graph, nodes_by_order(graph), rows)[: rows.top]
    if output_format == "csv":
        return render_table(GRADIENTS, gradient_rows(graph, nodes), "csv")
    parameters = chosen_parameters(graph, parameter_rows(graph), rows)[: rows.top]
    return render_gradients_json(graph, describe_capture(graph), gradient_notes(graph), parameters, nodes)


def _steps_data(found: GradientSteps, output_format: Literal["csv", "json"]) -> str:
    return render_table(STEPS, step_rows(found), "csv") if output_format == "csv" else render_steps_json(found)


def _page(graph: Graph, by: By | None, rows: RowChoice, *, full: bool) -> Iterator[Text]:
    """Yield the head, the findings, and the tables."""
    page = terminal_page(GradientsPage)
    found = gradients_of(graph)
    loss = "" if found.loss is None else f", loss {found.loss:.4g}"
    yield from page.capture_lines(graph)
    ran = "measured" if found.at_leaves_only else "ran"
    yield Text(f"{len(found.nodes):,} of {format_count(len(graph.nodes), 'node')} {ran}{loss}")
    notes = gradient_notes(graph)
    if not any(note.kind in ("vanishing", "exploding") for note in notes):  # which say it in more detail
        yield from page.fall(fall_of(graph), graph.model_name)
    yield from page.notes(notes, graph.model_name)
    yield from page.unmeasured((*passed_over(graph), *compiled_notes(graph), *unmeasured_notes(graph)))
    yield from _tables(page, graph, by, rows, full=full)


def _tables(page: GradientsPage, graph: Graph, by: By | None, rows: RowChoice, *, full: bool) -> Iterator[Text]:
    """Yield the tables of one backward call; without `by`, those of modules and parameters that have rows."""
    max_rows = _max_rows(rows, full=full)
    is_part = rows.is_part or rows.sort is not None
    if by in {None, "module"}:
        flow = chosen_flow(graph, flow_rows(graph), rows)
        if flow or by is not None:
            yield Text()
            shown = unfolded_flow(flow) if full or is_part else as_deep_as_fits(folded_flow(flow), MAX_ROWS)
            yield from page.flow(shown, max_rows, model=graph.model_name, is_part=is_part)
    if by in {None, "parameter"}:
        parameters = chosen_parameters(graph, parameter_rows(graph), rows)
        if parameters or by is not None or not rows.is_part:
            yield Text()
            is_each = full or is_part
            leaves = unfolded_parameters(parameters) if is_each else folded_parameters(graph, parameters)
            yield from page.parameters(leaves, max_rows, graph.model_name)
    if by == "node":
        yield Text()
        yield from page.nodes(graph, chosen_nodes_that_ran(graph, nodes_by_order(graph), rows), max_rows)


def _steps_page(found: GradientSteps, by: By | None, rows: RowChoice, *, full: bool) -> Iterator[Text]:
    """Yield the head, the findings, how each norm changed, and a table of the last call if requested."""
    page = terminal_page(StepsPage)
    yield from page.head(found)
    yield from page.notes(notes_of_all(found.steps), found.graph.model_name)
    yield from page.unmeasured((*passed_over(found.graph), *unmeasured_in_all(found.steps)))
    yield Text()
    chosen = chosen_moves(found.graph, moves(found.steps), rows)
    folds = not (full or rows.is_part or rows.sort)
    yield from page.tables(found.steps, chosen, _max_rows(rows, full=full), folds=folds, model=found.graph.model_name)
    if by is not None:
        yield Text()
        yield page.title(f"last call: {found.steps[-1].captured_at}")
        tables = _tables(page, found.graph, by, rows, full=full)
        next(tables)  # the empty line
        yield from tables
