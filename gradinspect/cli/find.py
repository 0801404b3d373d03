"""`gradinspect find`: which nodes meet a condition?"""

from typing import Annotated, Literal

import typer

from gradinspect.analyses.memory.compiled import closed_notes
from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.analyses.selection.node_conditions import near_misses
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.found import render_found_json
from gradinspect.renderers.terminal.found import FoundPage
from gradinspect.request import Request


@takes_source()
def find(
    request: Request,
    *,
    condition: Annotated[
        str,
        typer.Argument(
            metavar="CONDITION", help="bytes, class, dtype, flops, hooks, line, module, name, shape, status."
        ),
    ],
    full: Annotated[bool, typer.Option("--full", help="Each node in a row of its own.")] = False,
    output_format: Annotated[
        Literal["table", "json"],
        typer.Option("--format", metavar="KIND", help="Print table or json.", rich_help_panel=OUTPUT),
    ] = "table",
    budget: Annotated[
        int | None,
        typer.Option(
            min=500, metavar="N", help="With json: at most N characters, the largest nodes.", rich_help_panel=OUTPUT
        ),
    ] = None,
) -> None:
    """List the nodes that meet a condition.

    gradinspect find train.py 'bytes>1MiB and module~h.*'

    gradinspect find run.json 'status=modified or class~Conv*'

    gradinspect find run.json 'bytes>0' --format json --budget 4000
    """
    if budget is not None and output_format != "json":
        raise GradInspectError(f"'--budget {budget}' is for JSON.", "Add --format json.")

    def report(graph: Graph) -> None:
        rows = find_nodes(graph, where=condition)
        if output_format == "json":
            print_text(render_found_json(graph, rows, condition, budget))
            return
        page = terminal_page(FoundPage)
        print_lines(page.lines(rows, condition, model=graph.model_name, is_full=full))
        if not rows:
            print_lines(line for sentence in near_misses(graph, condition) for line in page.wrapped(sentence))
        print_lines(line for note in closed_notes(graph) for line in page.wrapped(note, "dim"))

    report_on(request, questions.graph(), report)
