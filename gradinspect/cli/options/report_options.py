"""Which findings of `check` are reported, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from gradinspect.cli.options.help import OUTPUT
from gradinspect.cli.options.shared import Command, with_options

Format: TypeAlias = Literal["text", "json", "github", "sarif"]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the command line says."""

    select: tuple[str, ...]
    skip: tuple[str, ...]
    baseline: Path | None
    writes_baseline: bool
    format: Format
    output: tuple[Path, ...]
    force: bool


def _read(  # noqa: PLR0913  # the options of the command line, each once
    *,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Report only GI101, or GI1 for all that start so."),
    ] = None,
    skip: Annotated[list[str] | None, typer.Option(metavar="CODE", help="Do not report these codes.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Do not report the findings in this file.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write the findings to the baseline.")
    ] = False,
    output_format: Annotated[
        Format,
        typer.Option("--format", metavar="KIND", help="Print text, json, github or sarif.", rich_help_panel=OUTPUT),
    ] = "text",
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", metavar="FILE", help="Also write a file, repeatable: .sarif .json", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.", rich_help_panel=OUTPUT)] = False,
) -> ReportOptions:
    return ReportOptions(
        select=tuple(select or ()),
        skip=tuple(skip or ()),
        baseline=baseline,
        writes_baseline=write_baseline,
        format=output_format,
        output=tuple(output or ()),
        force=force,
    )


takes_report_options: Callable[[Command], Command] = with_options(_read, "options")
