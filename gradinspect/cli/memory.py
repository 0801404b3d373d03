"""`gradinspect memory`: memory held for backward."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gradinspect.cli import questions
from gradinspect.cli.help import OUTPUT
from gradinspect.cli.printing import can_print_unicode, output_console, print_lines, print_text
from gradinspect.cli.reporting import report_on
from gradinspect.cli.request import takes_source
from gradinspect.cli.user_source import source_reader
from gradinspect.errors import GradInspectError
from gradinspect.request import Request

if TYPE_CHECKING:
    from rich.text import Text

    from gradinspect.analyses.memory.growth import Growth
    from gradinspect.analyses.memory.held import Memory
    from gradinspect.analyses.memory.rows import MemoryRow
    from gradinspect.graph import Graph

By = Literal["module", "operator", "line", "storage"]
MAX_MODULE_ROWS = 40
MAX_TABLE_ROWS = 20


@takes_source()
def memory(  # noqa: PLR0913  # one option for each way to cut the table
    request: Request,
    *,
    by: Annotated[By, typer.Option(metavar="KIND", help="By module, operator, line or storage.")] = "module",
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the N largest rows.")] = None,
    depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="Expand modules this deep.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All rows, each repeated block separately.")] = False,
    module: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only what these modules keep: 'h.*.attn'.")
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Watch N backward calls: does the graph grow?"),
    ] = None,
    output_format: Annotated[
        Literal["table", "csv", "json"],
        typer.Option("--format", metavar="KIND", help="Print table, csv or json.", rich_help_panel=OUTPUT),
    ] = "table",
) -> None:
    """Show what holds memory for backward, each storage counted once.

    gradinspect memory train.py

    gradinspect memory train.py --by line

    gradinspect memory train.py --iterations 5
    """

    def report(graph: "Graph") -> None:
        from gradinspect.analyses.memory.held import measure_memory, nodes_in_module  # --help need not wait

        measured = measure_memory(graph, None if module is None else nodes_in_module(graph, module))
        if output_format == "table":
            options = _Options(by=by, top=top, depth=depth, full=full)
            print_lines(_page(graph, measured, options, source_reader(request)))
        else:
            print_text(_data(graph, measured, by, output_format))

    def report_growth(growth: "Growth") -> None:
        from gradinspect.renderers.terminal.growth import render_growth, render_growth_csv, render_growth_json

        match output_format:
            case "table":
                console = output_console()
                print_lines(render_growth(growth, width=console.width, unicode=can_print_unicode(console)))
            case "csv":
                print_text(render_growth_csv(growth))
            case "json":
                print_text(render_growth_json(growth))

    if iterations is None:
        report_on(request, questions.graph(), report)
        return
    _check_several_moments(iterations, [request.backward, request.grad, request.at, request.root, module, top, depth])
    report_on(request, questions.growth(iterations), report_growth)


def _check_several_moments(iterations: int, of_one_moment: Sequence[object]) -> None:
    if any(option is not None for option in of_one_moment):
        raise GradInspectError(
            f"'--iterations {iterations}' observes several backward calls, and another option selects one.",
            "Remove --backward, --grad, --at, --root, --module, --top and --depth, or --iterations.",
        )


class _Options:
    def __init__(self, *, by: By, top: int | None, depth: int | None, full: bool) -> None:
        self.by = by
        self.depth = depth
        self.full = full
        self.top = top if top is not None or full or by == "module" else MAX_TABLE_ROWS


def _page(
    graph: "Graph", measured: "Memory", options: _Options, read_source: Callable[[str], Sequence[str] | None]
) -> "Iterator[Text]":
    """Yield the head, an empty line, the rows, and the notes."""
    # ruff: noqa: PLC0415  # what --help need not wait for
    from rich.text import Text

    from gradinspect.analyses.memory.notes import memory_notes
    from gradinspect.analyses.memory.rows import left_out, lines_of
    from gradinspect.analyses.memory.tree import largest_modules, module_tree
    from gradinspect.renderers.terminal.memory import MemoryPage, fitting_depth
    from gradinspect.renderers.terminal.memory_source import render_annotated_source

    console = output_console()
    unicode = can_print_unicode(console)
    page = MemoryPage(width=console.width, unicode=unicode)
    yield from page.head(measured, graph)
    yield Text()
    total = measured.extra_bytes
    if options.by == "module":
        tree = module_tree(graph, measured, folds=not options.full)
        tree = tree if options.top is None else largest_modules(tree, options.top)
        depth = options.depth if options.depth is not None or options.full else fitting_depth(tree, MAX_MODULE_ROWS)
        yield from page.modules(tree, total, depth)
    else:
        rows, rest = left_out(_rows(graph, measured, options.by), options.top)
        if options.by == "line":
            yield from render_annotated_source(lines_of(graph, rows), read_source, width=console.width, unicode=unicode)
            rows = [row for row in rows if row.nodes and graph.nodes[row.nodes[0]].frame is None]
        if rows or rest or options.by != "line":
            yield from page.table(options.by if options.by != "line" else "", rows, rest, total)
    notes = memory_notes(graph, measured)
    if notes:
        yield Text()
        yield from page.notes(notes)


def _data(graph: "Graph", measured: "Memory", by: By, output_format: str) -> str:
    """Write all rows as CSV or JSON."""
    from gradinspect.analyses.memory.notes import memory_notes
    from gradinspect.analyses.memory.tree import module_tree
    from gradinspect.analyses.summary import describe_capture
    from gradinspect.renderers.data.memory import render_memory_json, render_modules_csv, render_rows_csv

    rows: Sequence[Any] = module_tree(graph, measured, folds=False) if by == "module" else _rows(graph, measured, by)
    if output_format == "csv":
        return render_modules_csv(rows) if by == "module" else render_rows_csv(rows)
    return render_memory_json(measured, describe_capture(graph), by, rows, memory_notes(graph, measured))


def _rows(graph: "Graph", measured: "Memory", by: By) -> "Sequence[MemoryRow]":
    from gradinspect.analyses.memory.rows import rows_by_line, rows_by_operator, rows_by_storage

    return {"operator": rows_by_operator, "line": rows_by_line, "storage": rows_by_storage}[by](graph, measured)
