"""The options that choose a part of a graph: for each verb that shows one."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gradinspect.analyses.structure.focus import Focus
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


def takes_focus(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the options of a focus; it receives them as one `Focus`, its argument `focus`."""
    shared = inspect.signature(_read_focus).parameters
    own = [p for name, p in inspect.signature(command).parameters.items() if name != "focus"]

    @functools.wraps(command)
    def with_focus(*request: Any, **values: Any) -> int | None:  # noqa: ANN401  # whatever the options are
        focus = _read_focus(**{name: values.pop(name) for name in shared})
        return command(*request, focus=focus, **values)

    parameters = [*own, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in shared.values())]
    with_focus.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_focus
