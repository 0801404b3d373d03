"""The options that select part of a graph, shared by the verbs that show one."""

from typing import Annotated

import typer

from gradinspect.analyses.structure.focus import Focus
from gradinspect.cli.options import with_options
from gradinspect.errors import GradInspectError
from gradinspect.units import parse_bytes


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
    only_class: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only nodes of this class: 'Addmm*'.", hidden=True)
    ] = None,
    min_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Only nodes that save at least this: 1MiB.", hidden=True),
    ] = None,
) -> Focus:
    if radius is not None and around is None:
        raise GradInspectError(f"'--radius {radius}' requires --around.", "Add --around NAME.")
    return Focus(
        around=around,
        radius=2 if radius is None else radius,
        path_to=path_to,
        only_class=only_class,
        min_bytes=None if min_bytes is None else parse_bytes(min_bytes),
    )


takes_focus = with_options(_read_focus, "focus")
