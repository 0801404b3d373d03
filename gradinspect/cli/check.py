"""`gradinspect check`: what is wrong, and on which line?"""

from typing import Annotated

import typer

from gradinspect.checks.findings import Findings
from gradinspect.cli.options.project import project_of
from gradinspect.cli.options.report_options import ReportOptions, takes_report_options
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.output.findings_report import FindingsReport
from gradinspect.cli.output.printing import print_problem
from gradinspect.cli.running.compiled_checks import check_compiled
from gradinspect.cli.running.compiled_runs import check_is_comparable
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.questions import Question, observed_by
from gradinspect.cli.running.rank_results import result_of_findings, with_findings_of
from gradinspect.errors import FOUND_SOMETHING, ScriptFailedError
from gradinspect.request import Request


@takes_source(reads_captures=False)
@takes_report_options
def check(
    request: Request,
    *,
    options: ReportOptions,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Watch N backward calls. Default: until each optimizer has stepped twice, and on for ten seconds "
            "while nothing is found.",
        ),
    ] = None,
    gradcheck: Annotated[
        bool,
        typer.Option("--gradcheck", help="Check custom Functions by finite differences."),
    ] = False,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Check what torch.compile computes, beside eager, and nothing else.")
    ] = False,
) -> int:
    """Report problems in backward: which lines, why, what to do. Exits 1 if anything is found.

    gradinspect check train.py

    gradinspect check train.py --steps 4 --skip GI6 --format github

    gradinspect check train.py --baseline known.json -o findings.sarif

    gradinspect check train.py --compiled
    """
    project = project_of(request.source)
    report = FindingsReport(request, project, options, gradcheck=gradcheck)
    if compiled:
        check_is_comparable(request, {"--steps": steps is not None, "--gradcheck": gradcheck})
        report(check_compiled(request))
        return FOUND_SOMETHING if report.has_findings else 0
    try:
        report_on(request, _findings(steps or project.settings.steps, report, gradcheck=gradcheck), report)
    except ScriptFailedError as error:
        if not report.has_findings:
            raise
        if str(error):
            print_problem(str(error))
    return FOUND_SOMETHING if report.has_findings else 0


def _findings(num_calls: int | None, report: FindingsReport, *, gradcheck: bool) -> Question[Findings]:
    """Ask for the problems in that many backward calls; None: until all is known."""
    is_on = report.selection.has
    return Question(
        observe=observed_by("checks.evidence.observer.ChecksObserver", num_calls, gradcheck=gradcheck, is_on=is_on),
        a_capture_cannot="be checked",
        summarize=result_of_findings,
        merge=with_findings_of,
        stops_together=True,
    )
