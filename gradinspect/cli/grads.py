"""`gradinspect grads`: what flows back?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gradinspect.cli.printing import can_print_unicode, output_console, print_lines, print_text
from gradinspect.cli.reporting import report_on
from gradinspect.cli.request import SourceRequest, takes_source

if TYPE_CHECKING:
    from rich.text import Text

    from gradinspect.graph import Graph

# ruff: noqa: PLC0415  # what --help need not wait for

By = Literal["module", "parameter", "node"]
MAX_ROWS = 40


@takes_source
def grads(
    request: SourceRequest,
    *,
    by: Annotated[By | None, typer.Option(help="Only this table.  [default: modules, then parameters]")] = None,
    full: Annotated[bool, typer.Option("--full", help="All rows.")] = False,
    output_format: Annotated[Literal["text", "csv", "json"], typer.Option("--format")] = "text",
) -> None:
    """Run a program's own backward, and show the gradient at each module, parameter and node.

    gradinspect grads samples/transformer.py

    gradinspect grads samples/mlp.py --by node
    """

    def report(graph: "Graph") -> None:
        from gradinspect.analyses.gradients import findings, parameter_rows
        from gradinspect.analyses.summary import describe_capture
        from gradinspect.renderers.gradients import render_gradients_csv, render_gradients_json

        match output_format:
            case "text":
                print_lines(_page(graph, by, full=full))
            case "csv":
                print_text(render_gradients_csv(graph))
            case "json":
                where = describe_capture(graph)
                print_text(render_gradients_json(graph, where, findings(graph), parameter_rows(graph)))

    report_on(request, report, gradients=True)


def _page(graph: "Graph", by: By | None, *, full: bool) -> "Iterator[Text]":
    """Yield the head, the findings, and the tables."""
    from rich.text import Text

    from gradinspect.analyses.gradients import findings, flow_rows, gradients_of, parameter_rows
    from gradinspect.analyses.summary import describe_capture
    from gradinspect.renderers.gradients import GradientsPage
    from gradinspect.units import format_count

    console = output_console()
    page = GradientsPage(width=console.width, unicode=can_print_unicode(console))
    max_rows = None if full else MAX_ROWS
    found = gradients_of(graph)
    loss = "" if found.loss is None else f", loss {found.loss:.4g}"
    yield Text(describe_capture(graph), "bold")
    yield Text(f"{format_count(len(found.nodes), 'node')} ran of {len(graph.nodes):,}{loss}")
    yield from page.findings(findings(graph))
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
