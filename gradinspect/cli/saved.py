"""`gradinspect saved`: what each node saves for backward."""

from typing import Annotated, Literal

import typer

from gradinspect.analyses.memory.compiled import closed_notes
from gradinspect.analyses.memory.saved_rows import SAVED_FIELDS, SavedFilter, filter_rows, saved_rows
from gradinspect.analyses.selection.rows import ALL_ROWS, RowChoice, chosen_rows
from gradinspect.analyses.structure.name_folding import MAX_ROWS
from gradinspect.analyses.structure.node_names import module_names
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.rows import takes_rows
from gradinspect.cli.output.console import can_print_unicode, output_console, print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.graph import Graph
from gradinspect.renderers.data.summary import SAVED
from gradinspect.renderers.data.table import render_table
from gradinspect.renderers.terminal.page import Page
from gradinspect.renderers.terminal.saved_table import render_folded_table, render_saved_table
from gradinspect.request import Request


@takes_source()
@takes_rows
def saved(  # noqa: PLR0913  # one option for each thing to filter by
    request: Request,
    *,
    rows: RowChoice,
    node: Annotated[str | None, typer.Option(metavar="PATTERN", help="Only nodes of this class: 'Conv*'.")] = None,
    name: Annotated[str | None, typer.Option(metavar="PATTERN", help="Only this attribute: '_saved_self'.")] = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only tensors that are live, freed, modified, ...")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only this kind of value: tensor, int, tuple, ...")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All values, in the order of the nodes.")] = False,
    output_format: Annotated[
        Literal["table", "csv", "json", "markdown"],
        typer.Option("--format", metavar="KIND", help="Print table, csv, json or markdown.", rich_help_panel=OUTPUT),
    ] = "table",
) -> None:
    """Show what each node saves (_saved_*). The largest tensors come first, equal blocks in one row.

    gradinspect saved train.py --sort bytes

    gradinspect saved train.py --where 'bytes>1MiB and class~Conv*'
    """

    def report(graph: Graph) -> None:
        wanted = SavedFilter(node=node, name=name, status=status, kind=kind)
        found = chosen_rows(filter_rows(saved_rows(graph), wanted), SAVED_FIELDS, rows, module_names(graph))
        if output_format == "table":
            console = output_console()
            unicode = can_print_unicode(console)
            if full or rows != ALL_ROWS or wanted != SavedFilter():
                lines = render_saved_table(found, width=console.width, unicode=unicode, top=rows.top)
            else:
                lines = render_folded_table(found, width=console.width, unicode=unicode, top=MAX_ROWS)
            print_lines(lines)
            print_lines(line for note in closed_notes(graph) for line in terminal_page(Page).wrapped(note, "dim"))
        else:
            print_text(render_table(SAVED, found[: rows.top], output_format))

    report_on(request, questions.graph(), report)
