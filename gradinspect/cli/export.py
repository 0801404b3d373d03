"""`gradinspect export`: write the graph to files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gradinspect.cli import questions
from gradinspect.cli.files import parse_targets, write_targets
from gradinspect.cli.focusing import takes_focus
from gradinspect.cli.reporting import report_on
from gradinspect.cli.request import takes_source
from gradinspect.cli.user_source import path_finder
from gradinspect.errors import GradInspectError
from gradinspect.renderers.formats import suffixes
from gradinspect.request import Request

if TYPE_CHECKING:
    from gradinspect.analyses.structure.focus import Focus
    from gradinspect.graph import Graph


def us_spelling(option: str) -> str:
    """Accept `--colour-by` for `--color-by`."""
    return option.replace("colour", "color")


@takes_source()
@takes_focus
def export(  # noqa: PLR0913  # the drawing options live here
    request: Request,
    *,
    focus: "Focus",
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", metavar="FILE", help=f"File to write, repeatable: {suffixes()}"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    depth: Annotated[int | None, typer.Option(min=0, help="Expand modules this deep.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Fold nothing.")] = False,
    fold_shapes: Annotated[
        bool, typer.Option("--fold-shapes", help="Draw a chain of views and transposes as one box.")
    ] = False,
    none_edges: Annotated[bool, typer.Option("--none", help="Draw None edges.")] = False,
    saved: Annotated[bool, typer.Option("--saved", help="Draw the saved tensors.")] = False,
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Let backward run and keep its gradients, for 'grads'.")
    ] = False,
    color_by: Annotated[
        Literal["grad", "bytes", "dtype", "device", "module", "file"] | None,
        typer.Option(help="Color boxes by gradient norm, bytes saved, or kind."),
    ] = None,
    dark: Annotated[
        bool, typer.Option("--dark", help="Use a dark background. HTML pages follow the system setting.")
    ] = False,
    link: Annotated[
        str | None, typer.Option(metavar="URL", help="Link each node to its line; may contain {path}, {file}, {line}.")
    ] = None,
    direction: Annotated[
        Literal["TB", "BT", "LR", "RL"], typer.Option(help="Direction of the arrows; TB puts the roots on top.")
    ] = "TB",
) -> None:
    """Write the graph to files; the suffix determines the format.

    gradinspect export samples/mlp.py -o mlp.svg

    gradinspect export samples/resnet.py -o resnet.png -o resnet.json.gz --depth 1
    """
    if not output:
        raise GradInspectError("No output file was given.", "Add one: -o graph.svg")
    targets = parse_targets(output, force=force)
    drawing = {"depth": depth, "full": full, "fold_shapes": fold_shapes, "none_edges": none_edges, "saved": saved,
               "direction": direction, "color_by": color_by, "dark": dark}  # fmt: skip
    if link is not None:
        from gradinspect.renderers.source_links import check_link  # noqa: PLC0415  # what --help need not wait for

        check_link(link)
    report_on(
        request,
        questions.gradients() if gradients or color_by == "grad" else questions.graph(),
        lambda graph: write_targets(
            graph, targets, request=request, focus=focus, force=force, **drawing, links=_links(request, graph, link)
        ),
    )


def _links(request: Request, graph: "Graph", link: str | None) -> tuple[str | None, ...]:
    from gradinspect.renderers.source_links import source_links  # noqa: PLC0415  # what --help need not wait for

    return () if link is None else source_links(graph, link, path_finder(request))
