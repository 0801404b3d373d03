"""The options that choose the rows of a table, the same for every verb that prints one."""

from typing import Annotated

import typer

from gradinspect.analyses.selection.rows import RowChoice
from gradinspect.cli.options.shared import Command, with_options


def _read_choice(
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N rows, the largest.")] = None,
    module: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only what is in these modules: 'h.*.attn'.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only rows such as 'bytes>1MiB and class~Conv*'.")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="FIELD", help="Order of the rows: graph, bytes, name, ...")
    ] = None,
) -> RowChoice:
    return RowChoice(top, module, where, sort)


def takes_rows(command: Command) -> Command:
    """Give a command the options that choose rows; it receives them as one `RowChoice`, its argument `rows`."""
    return with_options(_read_choice, "rows")(command)
