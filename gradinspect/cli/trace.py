"""`gradinspect trace`: show the autograd graph."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from gradinspect.analyses.structure.focus import Focus, focus_graph
from gradinspect.analyses.summary import summarize
from gradinspect.cli.options.focusing import takes_focus
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.output.browser import open_page, temporary_page
from gradinspect.cli.output.console import can_print_unicode, output_console, print_lines
from gradinspect.cli.output.files import parse_target, parse_targets, write_targets
from gradinspect.cli.output.printing import is_silent, print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.data.summary import SUMMARY, render_summary_markdown
from gradinspect.renderers.data.table import render_figures
from gradinspect.renderers.formats import PAGE, load_renderer, suffixes
from gradinspect.renderers.terminal.compilation import MAX_ROWS, CompilationPage
from gradinspect.renderers.terminal.summary import render_summary
from gradinspect.renderers.terminal.trees.forward_tree import render_forward
from gradinspect.renderers.terminal.trees.tree import TreeOptions, render_tree
from gradinspect.request import Request


@takes_source()
@takes_focus
def trace(  # noqa: PLR0913  # the options of the tree
    request: Request,
    *,
    focus: Focus,
    order: Annotated[
        Literal["backward", "forward"],
        typer.Option(metavar="ORDER", help="Rows from the loss (backward), or from the inputs (forward)."),
    ] = "backward",
    depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="Expand modules this deep.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing and leave nothing out.")] = False,
    fold_shapes: Annotated[
        bool, typer.Option("--fold-shapes", help="Show a chain of views as one row.", hidden=True)
    ] = False,
    output_format: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option("--format", metavar="KIND", help="Print text, json or markdown.", rich_help_panel=OUTPUT),
    ] = "text",
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", metavar="FILE", help=f"Also write a file, repeatable: {suffixes()}", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.", rich_help_panel=OUTPUT)] = False,
    opens: Annotated[
        bool, typer.Option("--open", help="Also open the graph as a page in a browser.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Show the autograd graph of a program at its first backward call.

    gradinspect trace train.py

    gradinspect trace train.py --order forward --depth 1 -o graph.svg -- --lr 0.1

    gradinspect trace model.py:'Net()' --input 2x3x32x32
    """
    targets = parse_targets(output or [], force=force)
    if focus.is_set and output_format != "text" and not (targets or opens):
        raise GradInspectError(
            f"'--format {output_format}' has the figures of the whole graph, not of a part.",
            "Remove one of the two options.",
        )

    if opens:
        load_renderer(PAGE)

    def show(graph: Graph) -> None:
        if output_format == "text":
            print_lines(_page(graph, focus, order, depth=depth, full=full, fold_shapes=fold_shapes))
        else:
            summary = summarize(graph)
            is_json = output_format == "json"
            print_text(render_figures(summary, SUMMARY) if is_json else render_summary_markdown(summary))

    def report(graph: Graph) -> None:
        page = [parse_target(temporary_page(request.label))] if opens and not is_silent() else []
        try:
            show(graph)
        finally:  # also if the reader of standard output has left
            drawing = {"depth": depth, "full": full, "fold_shapes": fold_shapes}
            write_targets(graph, [*targets, *page], request=request, force=force, focus=focus, **drawing)
        for target in page:
            open_page(target.path)

    report_on(request, questions.graph(), report)


def _page(
    graph: Graph,
    focus: Focus,
    order: Literal["backward", "forward"],
    **options: Any,  # noqa: ANN401  # fields of `TreeOptions`
) -> Iterator[Text]:
    """Yield the head of the whole graph, an empty line, and the tree of the part in focus."""
    console = output_console()
    part, cut = focus_graph(graph, focus)
    yield from render_summary(summarize(graph), width=console.width).split("\n")
    yield Text()
    tree_options = TreeOptions(
        width=console.width,
        unicode=can_print_unicode(console),
        max_rows=None if options["full"] else 100,
        cut=cut,
        **options,
    )
    render = render_tree if order == "backward" else render_forward
    yield from render(part, tree_options)
    page = CompilationPage(width=console.width, unicode=tree_options.unicode)
    yield from page.lines(graph, max_rows=None if options["full"] else MAX_ROWS)
