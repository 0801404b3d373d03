"""`gradinspect train.py`: the headlines of one run."""

import shlex
from typing import Final

from gradinspect.checks.overview import Overview
from gradinspect.checks.settings import selection_of
from gradinspect.checks.verdict import without_comments
from gradinspect.cli.options.project import project_of, relative_names
from gradinspect.cli.options.request import takes_source, words_of
from gradinspect.cli.options.shared import TextOrJson
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.printing import print_text
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.questions import Question, observed_by
from gradinspect.cli.running.rank_results import result_of_graph_in
from gradinspect.graph import Graph
from gradinspect.renderers.data.overview import render_overview_json
from gradinspect.renderers.terminal.overview import OverviewPage
from gradinspect.request import Request

HEADLINES: Final = Question[Overview](
    observe=observed_by("checks.evidence.overview_observer.OverviewObserver"), summarize=result_of_graph_in
)


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
            print_lines(terminal_page(OverviewPage).lines(found, shlex.join(words_of(request))))

    report_on(request, HEADLINES, report)
