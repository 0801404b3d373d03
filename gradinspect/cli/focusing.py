"""The options that choose a part of a graph: for each verb that shows one."""

from typing import Annotated

import typer

from gradinspect.analyses.structure.focus import Focus
from gradinspect.cli.options import with_options
from gradinspect.errors import GradInspectError
from gradinspect.units import parse_bytes

PANEL = "Only a part of the graph"


def _read_focus(
    around: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=PANEL, metavar="NAME", help="Only what is near a node (#17), class, module or parameter."
        ),
    ] = None,
    radius: Annotated[
        int | None,
        typer.Option(rich_help_panel=PANEL, min=0, help="With --around: how many edges away; 2 unless given."),
    ] = None,
    path_to: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=PANEL, metavar="NAME", help="Only the ways from a root to a parameter, module or node."
        ),
    ] = None,
    only_class: Annotated[
        str | None, typer.Option(rich_help_panel=PANEL, metavar="PATTERN", help="Only nodes of this class: 'Addmm*'.")
    ] = None,
    min_bytes: Annotated[
        str | None,
        typer.Option(rich_help_panel=PANEL, metavar="SIZE", help="Only nodes that save this much or more: 1MiB."),
    ] = None,
) -> Focus:
    if radius is not None and around is None:
        raise GradInspectError(f"'--radius {radius}' needs --around.", "Name what it is the radius of: --around NAME")
    return Focus(
        around=around,
        radius=2 if radius is None else radius,
        path_to=path_to,
        only_class=only_class,
        min_bytes=None if min_bytes is None else parse_bytes(min_bytes),
    )


takes_focus = with_options(_read_focus, "focus")
