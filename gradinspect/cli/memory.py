"""`gradinspect memory`: memory held for backward."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from gradinspect.analyses.memory.flops import FLOP_FIELDS, count_flops
from gradinspect.analyses.memory.flops import left_out as left_out_flops
from gradinspect.analyses.memory.growth import Growth
from gradinspect.analyses.memory.held import Memory, measure_memory
from gradinspect.analyses.memory.notes import memory_notes
from gradinspect.analyses.memory.release import nodes_to_run
from gradinspect.analyses.memory.rows import (
    MEMORY_FIELDS,
    MemoryRow,
    left_out,
    lines_of,
    rows_by_line,
    rows_by_operator,
    rows_by_storage,
)
from gradinspect.analyses.memory.tree import ModuleBytes, largest_modules, module_tree, sorted_modules
from gradinspect.analyses.selection.node_conditions import chosen_nodes
from gradinspect.analyses.selection.rows import RowChoice, sorted_rows
from gradinspect.analyses.summary import describe_capture
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.rows import takes_rows
from gradinspect.cli.options.user_source import source_reader
from gradinspect.cli.options.whole_steps import check_can_run_again, check_runs_alone
from gradinspect.cli.output.console import can_print_unicode, output_console, print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.budget_runs import compare_budgets
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.questions import Question, at_first_backward
from gradinspect.cli.running.rank_results import result_of_growth
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.json import render_json
from gradinspect.renderers.data.memory import (
    BUDGETS,
    FLOPS,
    GROUPS,
    GROWTH,
    ITERATIONS,
    MODULES,
    render_memory_json,
    with_depths,
)
from gradinspect.renderers.data.table import render_figures, render_table
from gradinspect.renderers.terminal.memory.budgets import BudgetPage
from gradinspect.renderers.terminal.memory.flops import FlopsPage
from gradinspect.renderers.terminal.memory.growth import render_growth
from gradinspect.renderers.terminal.memory.held import MemoryPage, fitting_depth
from gradinspect.renderers.terminal.memory.source_lines import render_annotated_source
from gradinspect.request import Request

By = Literal["module", "operator", "line", "storage", "flops"]
MAX_MODULE_ROWS = 40
MAX_TABLE_ROWS = 20
CHOOSING = ("top", "module", "where", "sort")


@takes_source()
@takes_rows
def memory(  # noqa: PLR0913  # one option for each way to cut the table
    request: Request,
    *,
    rows: RowChoice,
    by: Annotated[By, typer.Option(metavar="KIND", help="By module, operator, line, storage or flops.")] = "module",
    depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="Expand modules this deep.")] = None,
    full: Annotated[bool, typer.Option("--full", help="All rows, each repeated block separately.")] = False,
    iterations: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Watch N backward calls: does the graph grow?"),
    ] = None,
    at_node: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="What is still held when backward reaches node #N.")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="What a compiled step keeps under each activation memory budget.")
    ] = False,
    output_format: Annotated[
        Literal["table", "csv", "json"],
        typer.Option("--format", metavar="KIND", help="Print table, csv or json.", rich_help_panel=OUTPUT),
    ] = "table",
) -> None:
    """Show what holds memory for backward, each storage counted once.

    gradinspect memory train.py

    gradinspect memory train.py --by line --top 10

    gradinspect memory train.py --iterations 5

    gradinspect memory train.py --compiled
    """

    def report(graph: Graph) -> None:
        chosen = nodes_to_run(graph, at_node, chosen_nodes(graph, rows.module, rows.where))
        if by == "flops":
            _print_flops(graph, chosen, rows, full=full, output_format=output_format)
        else:
            options = _Options(by=by, rows=rows, depth=depth, full=full, moment=_moment(graph, at_node))
            _print_memory(graph, chosen, options, output_format, source_reader(request))

    chosen = {"--depth": depth, "--at-node": at_node, **{f"--{name}": getattr(rows, name) for name in CHOOSING}}
    if compiled:
        without = {**chosen, "--iterations": iterations, "--full": full or None, "--by": None if by == "module" else by}
        _print_budgets(request, without, output_format)
        return
    if iterations is None:
        report_on(request, questions.graph(), report)
        return
    of_one = [request.backward, request.grad, request.at, request.root, *chosen.values()]
    _check_several_moments(iterations, of_one)
    report_on(request, _growth(iterations), lambda growth: _print_growth(growth, output_format))


def _growth(iterations: int) -> Question[Growth]:
    """Ask how the live graph grows over several backward calls."""
    return Question(
        observe=at_first_backward("observers.graphs.growth_observer.GrowthObserver", iterations),
        a_capture_cannot="show several iterations",
        summarize=result_of_growth,
        needs_values=False,
    )


def _print_growth(growth: Growth, output_format: str) -> None:
    match output_format:
        case "table":
            console = output_console()
            print_lines(render_growth(growth, width=console.width, unicode=can_print_unicode(console)))
        case "csv":
            print_text(render_table(ITERATIONS, growth.iterations, "csv"))
        case "json":
            print_text(render_figures(growth, GROWTH))


def _print_budgets(request: Request, without: Mapping[str, object], output_format: str) -> None:
    """Print what a compiled step keeps under each budget.

    Raises:
        GradInspectError: Another option has no effect, or the program cannot be run several times.
    """
    extra = {**without, "--eager": request.eager or None, "--fake": request.fake or None, "--at": request.at}
    extra |= {"--continue": request.goes_on or None, "--create-graph": request.creates_graph or None}
    option = next((name for name, value in extra.items() if value is not None), None)
    if option is not None:
        raise GradInspectError(f"'{option}' cannot be combined with '--compiled'.", "Remove one of them.")
    check_can_run_again(request, "--compiled")
    check_runs_alone("--compiled")
    found = compare_budgets(request)
    match output_format:
        case "table":
            print_lines(terminal_page(BudgetPage).lines(found))
        case "csv":
            print_text(render_table(BUDGETS, found.compiled.rows, "csv"))
        case "json":
            print_text(render_json(found))


def _check_several_moments(iterations: int, of_one_moment: Sequence[object]) -> None:
    if any(option is not None for option in of_one_moment):
        raise GradInspectError(
            f"'--iterations {iterations}' observes several backward calls, and another option selects one.",
            "Remove --backward, --grad, --at, --at-node, --root, --depth, --top, --module, --where and --sort, or "
            "--iterations.",
        )


def _moment(graph: Graph, at_node: int | None) -> str:
    """Say what --at-node stands for: `When backward reaches #41 AddmmBackward0:`; nothing in a graph without nodes."""
    is_there = at_node is not None and at_node < len(graph.nodes)
    return f"When backward reaches #{at_node} {graph.nodes[at_node].name}:" if is_there else ""  # type: ignore[index]  # it is there


class _Options:
    def __init__(self, *, by: By, rows: RowChoice, depth: int | None, full: bool, moment: str) -> None:
        self.by = by
        self.moment = moment
        self.depth = depth
        self.full = full
        self.top = rows.top if rows.top is not None or full or by == "module" else MAX_TABLE_ROWS
        self.sort = rows.sort


def _print_memory(
    graph: Graph,
    nodes: frozenset[int] | None,
    options: _Options,
    output_format: str,
    read_source: Callable[[str], Sequence[str] | None],
) -> None:
    measured = measure_memory(graph, nodes)
    if output_format == "table":
        print_lines(_page(graph, measured, options, read_source))
    else:
        print_text(_data(graph, measured, options, output_format))


def _print_flops(
    graph: Graph, nodes: frozenset[int] | None, rows: RowChoice, *, full: bool, output_format: str
) -> None:
    counted = count_flops(graph, nodes)
    found = sorted_rows(counted.rows, FLOP_FIELDS, rows.sort)
    match output_format:
        case "csv":
            print_text(render_table(FLOPS, found, "csv"))
        case "json":
            print_text(render_json({"rows": found, "unknown": counted.unknown}))
        case _:
            page = terminal_page(FlopsPage)
            top = rows.top if rows.top is not None or full else MAX_TABLE_ROWS
            print_lines([*page.capture_lines(graph), "", *page.table(counted, *left_out_flops(found, top))])


def _page(
    graph: Graph, measured: Memory, options: _Options, read_source: Callable[[str], Sequence[str] | None]
) -> Iterator[Text]:
    """Yield the head, an empty line, the rows, and the notes."""
    page = terminal_page(MemoryPage)
    yield from page.head(measured, graph, options.moment)
    yield Text()
    total = measured.extra_bytes
    tree: Sequence[ModuleBytes] = ()
    if options.by == "module":
        tree = sorted_modules(module_tree(graph, measured, folds=not options.full), options.sort)
        tree = tree if options.top is None else largest_modules(tree, options.top)
        depth = options.depth if options.depth is not None or options.full else fitting_depth(tree, MAX_MODULE_ROWS)
        yield from page.modules(tree, total, depth, graph.model_name)
    else:
        rows, rest = left_out(_rows(graph, measured, options), options.top)
        if options.by == "line":
            lines = lines_of(graph, rows)
            yield from render_annotated_source(lines, read_source, total=total, width=page.width, unicode=page.unicode)
            rows = [row for row in rows if row.nodes and graph.nodes[row.nodes[0]].frame is None]
        if rows or rest or options.by != "line":
            yield from page.table(options.by if options.by != "line" else "", rows, rest, total)
    below = [*page.own_code(tree, total), *page.notes(memory_notes(graph, measured))]
    if below:
        yield from (Text(), *below)


def _data(graph: Graph, measured: Memory, options: _Options, output_format: str) -> str:
    """Write all rows as CSV or JSON."""
    by = options.by
    rows: Sequence[Any] = (
        sorted_modules(module_tree(graph, measured, folds=False), options.sort)
        if by == "module"
        else _rows(graph, measured, options)
    )
    if output_format == "csv":
        return render_table(MODULES, with_depths(rows), "csv") if by == "module" else render_table(GROUPS, rows, "csv")
    return render_memory_json(measured, describe_capture(graph), by, rows, memory_notes(graph, measured))


def _rows(graph: Graph, measured: Memory, options: _Options) -> Sequence[MemoryRow]:
    rows_by = {"operator": rows_by_operator, "line": rows_by_line, "storage": rows_by_storage}
    return sorted_rows(rows_by[options.by](graph, measured), MEMORY_FIELDS, options.sort)
