"""The options that select part of a graph, shared by the verbs that show one."""

from typing import Annotated

import typer

from gradinspect.analyses.structure.focus import Focus
from gradinspect.cli.options.shared import with_options
from gradinspect.errors import GradInspectError


def _read_focus(
    around: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only nodes near #17, a class, module or parameter."),
    ] = None,
    radius: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="With --around: distance in edges.  [default: 2]", hidden=True),
    ] = None,
    path_to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only paths to a parameter, module or node."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only nodes such as 'bytes>1MiB and class~Conv*'.")
    ] = None,
) -> Focus:
    if radius is not None and around is None:
        raise GradInspectError(f"'--radius {radius}' requires --around.", "Add --around NAME.")
    return Focus(
        around=around,
        radius=2 if radius is None else radius,
        path_to=path_to,
        where=where,
    )


takes_focus = with_options(_read_focus, "focus")
