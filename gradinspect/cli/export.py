"""`gradinspect export`: write the graph to files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from gradinspect.analyses.structure.focus import Focus
from gradinspect.analyses.summary import passed_over
from gradinspect.cli.options.focusing import takes_focus
from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.user_source import path_finder
from gradinspect.cli.output.files import parse_targets, write_targets
from gradinspect.cli.output.printing import print_message
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.renderers.formats import suffixes
from gradinspect.renderers.source_links import check_link, source_links
from gradinspect.request import Request


@takes_source()
@takes_focus
def export(  # noqa: PLR0913  # the drawing options live here
    request: Request,
    *,
    focus: Focus,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", metavar="FILE", help=f"File to write, repeatable: {suffixes()}", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.", rich_help_panel=OUTPUT)] = False,
    depth: Annotated[int | None, typer.Option(min=0, metavar="N", help="Expand modules this deep.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing.")] = False,
    fit_to: Annotated[
        Literal["screen", "a4", "slide", "none"],
        typer.Option(metavar="SHEET", help="Room: screen, a4, slide, none."),
    ] = "screen",
    fold_shapes: Annotated[
        bool, typer.Option("--fold-shapes", help="Draw a chain of views as one box.", hidden=True)
    ] = False,
    none_edges: Annotated[bool, typer.Option("--none", help="Draw None edges.", hidden=True)] = False,
    saved: Annotated[bool, typer.Option("--saved", help="Draw the saved tensors.")] = False,
    gradients: Annotated[bool, typer.Option("--gradients", help="Let backward run, and keep its gradients.")] = False,
    values: Annotated[bool, typer.Option("--values", help="Let backward run; keep fingerprints for diff.")] = False,
    color_by: Annotated[
        Literal["grad", "bytes", "flops", "dtype", "device", "module", "file"] | None,
        typer.Option(metavar="KIND", help="Color by grad, bytes, flops, dtype, device, module, file."),
    ] = None,
    theme: Annotated[
        Literal["light", "dark", "paper"],
        typer.Option(metavar="THEME", help="light, dark, or paper: 120 mm wide, without a legend."),
    ] = "light",
    link: Annotated[
        str | None, typer.Option(metavar="URL", help="Link nodes to lines, with {path}, {file}, {line}.", hidden=True)
    ] = None,
    direction: Annotated[
        Literal["TB", "BT", "LR", "RL"],
        typer.Option(metavar="TB|BT|LR|RL", help="Direction of the arrows; TB: roots on top.", hidden=True),
    ] = "TB",
) -> None:
    """Write the graph to files; the suffix determines the format.

    gradinspect export train.py -o graph.svg

    gradinspect export train.py -o graph.png -o graph.json.gz --depth 1
    """
    if not output:
        raise GradInspectError("No output file was given.", "Add one: -o graph.svg")
    targets = parse_targets(output, force=force)
    drawing = {"depth": depth, "full": full, "fit_to": fit_to, "fold_shapes": fold_shapes, "none_edges": none_edges,
               "saved": saved, "direction": direction, "color_by": color_by,
               "theme": theme}  # fmt: skip
    if link is not None:
        check_link(link)

    def report(graph: Graph) -> None:
        for sentence in passed_over(graph):
            print_message(sentence)
        links = _links(request, graph, link)
        write_targets(graph, targets, request=request, focus=focus, force=force, **drawing, links=links)

    report_on(request, _question(gradients=gradients or color_by == "grad", values=values), report)


def _question(*, gradients: bool, values: bool) -> questions.Question[Graph]:
    """Choose what to record.

    Raises:
        GradInspectError: Gradients and fingerprints are requested together.
    """
    if gradients and values:
        raise GradInspectError("'--values' and gradients cannot be recorded in one run.", "Export twice.")
    return questions.values() if values else questions.gradients() if gradients else questions.graph()


def _links(request: Request, graph: Graph, link: str | None) -> tuple[str | None, ...]:
    return () if link is None else source_links(graph, link, path_finder(request))
