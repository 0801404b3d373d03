"""`gradinspect train.py`: the headlines of one run."""

import shlex
from collections.abc import Iterator

from gradinspect.checks.overview import Overview
from gradinspect.checks.settings import selection_of
from gradinspect.checks.verdict import without_comments
from gradinspect.cli.options.project import project_of, relative_names
from gradinspect.cli.options.request import takes_source
from gradinspect.cli.options.shared import TextOrJson
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running import questions
from gradinspect.cli.running.pipeline import report_on
from gradinspect.graph import Graph
from gradinspect.renderers.data.overview import render_overview_json
from gradinspect.renderers.terminal.overview import OverviewPage
from gradinspect.request import Request
from gradinspect.source import CaptureFile, Expression, Module, Script, Source


@takes_source()
def overview(request: Request, *, output_format: TextOrJson = "text") -> None:
    """Show the headlines of one run: graph, memory, problems, gradients, peak.

    gradinspect train.py

    gradinspect overview train.py -- --lr 0.1
    """
    project = project_of(request.source)
    selection = selection_of(project.settings)

    def report(found: Overview | Graph) -> None:
        if isinstance(found, Graph):  # of a capture file
            found = Overview(source=request.label, graph=found, findings=None)
        elif found.findings is not None:
            names = relative_names(found.findings.files, project.root)
            found = found.with_findings(without_comments(found.findings, selection, names))
        if output_format == "json":
            print_text(render_overview_json(found))
        else:
            print_lines(terminal_page(OverviewPage).lines(found, shlex.join(_words(request))))

    report_on(request, questions.overview(), report)


def _words(request: Request) -> Iterator[str]:
    """Yield what follows the verb on the command line of a request."""
    yield from _source_words(request.source)
    for given in request.inputs:
        yield from ("--input", str(given))
    if request.loss is not None:
        yield from ("--loss", request.loss)
    if request.arguments:
        yield from ("--", *request.arguments)


def _source_words(source: Source) -> Iterator[str]:
    match source:
        case Module(name):
            yield from ("-m", name)
        case Expression(module, text):
            yield f"{module}:{text}"
        case CaptureFile(path) | Script(path):
            yield str(path)
