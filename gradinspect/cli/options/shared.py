"""Options shared by several verbs, each declared once.

Typer reads a command's options from its signature, and cannot share some of them. So the signature of a verb is
composed here, of its own options and of those that its readers declare.
"""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal, TypeAlias

import typer

from gradinspect.cli.options.help import OUTPUT

Command: TypeAlias = Callable[..., int | None]
TextOrJson: TypeAlias = Annotated[
    Literal["text", "json"],
    typer.Option("--format", metavar="KIND", help="Print text or json.", rich_help_panel=OUTPUT),
]


def with_options(
    reader: Callable[..., object], name: str, *, without: Collection[str] = (), is_ahead: bool = False
) -> Callable[[Command], Command]:
    """Add the options of a reader to a command.

    Args:
        reader: Declares the options; its result is passed to the command.
        name: The name of that argument.
        without: Options that this command does not accept; the reader gets their defaults.
        is_ahead: Whether they come before the command's own options, also in the help.
    """
    declared = inspect.signature(reader).parameters
    shared = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in declared.values() if p.name not in without]

    def decorate(command: Command) -> Command:
        own = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in inspect.signature(command).parameters.values()
            if p.name != name
        ]

        @functools.wraps(command)
        def with_shared(**values: Any) -> int | None:  # noqa: ANN401  # any options
            read = reader(**{parameter.name: values.pop(parameter.name) for parameter in shared})
            return command(**{name: read}, **values)

        parameters = [*shared, *own] if is_ahead else [*own, *shared]
        with_shared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_shared.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_shared

    return decorate
