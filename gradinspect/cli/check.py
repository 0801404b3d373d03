"""`gradinspect check`: what is wrong, and on which line?"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gradinspect.cli import questions
from gradinspect.cli.help import OUTPUT
from gradinspect.cli.printing import can_print_unicode, output_console, print_lines, print_problem, print_text
from gradinspect.cli.reporting import report_on
from gradinspect.cli.request import OF_THE_GRAPH, takes_source
from gradinspect.cli.user_source import path_namer
from gradinspect.errors import FOUND_SOMETHING, ScriptFailedError
from gradinspect.request import Request

if TYPE_CHECKING:
    from gradinspect.checks.findings import Findings

# ruff: noqa: PLC0415  # what --help need not wait for

Format = Literal["text", "json", "github"]


@takes_source(without=OF_THE_GRAPH)
def check(
    request: Request,
    *,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Watch N backward calls. Default: until each optimizer has stepped twice, at most 100 calls or 10 s.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Report only GI101, or GI1 for all that start so."),
    ] = None,
    skip: Annotated[list[str] | None, typer.Option(metavar="CODE", help="Do not report these codes.")] = None,
    gradcheck: Annotated[
        bool,
        typer.Option("--gradcheck", help="Check custom Functions by finite differences."),
    ] = False,
    output_format: Annotated[
        Format,
        typer.Option("--format", metavar="KIND", help="Print text, json or github.", rich_help_panel=OUTPUT),
    ] = "text",
) -> int:
    """Report problems in backward: which lines, why, what to do. Exits 1 if anything is found.

    gradinspect check train.py

    gradinspect check train.py --steps 4 --skip GI6 --format github
    """
    from gradinspect.checks.findings import check_codes
    from gradinspect.checks.registry import codes

    wanted, unwanted = check_codes(only or [], codes()), check_codes(skip or [], codes())
    found_codes: list[str] = []

    def report(found: "Findings") -> None:
        from msgspec.structs import replace

        from gradinspect.checks.findings import selected

        if found.rank:
            return
        found = replace(found, findings=selected(found.findings, wanted, unwanted))
        found_codes.extend(finding.code for finding in found.findings)
        _print(found, request, output_format)

    try:
        report_on(request, questions.findings(steps, gradcheck=gradcheck), report)
    except ScriptFailedError as error:
        if not found_codes:
            raise
        if str(error):
            print_problem(str(error))
    return FOUND_SOMETHING if found_codes else 0


def _print(found: "Findings", request: Request, output_format: Format) -> None:
    from gradinspect.renderers.terminal.findings import FindingsPage, render_findings_github, render_findings_json

    if output_format == "json":
        print_text(render_findings_json(found))
    elif output_format == "github":
        text = render_findings_github(found, path_namer(request))
        if text:
            print_text(text)
    else:
        console = output_console()
        page = FindingsPage(width=console.width, unicode=can_print_unicode(console))
        print_lines(page.lines(found))
