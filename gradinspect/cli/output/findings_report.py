"""Report the findings of a run: what is selected, ignored and known, on the screen and in files."""

from pathlib import Path
from typing import Final

from gradinspect.checks.baseline import updated
from gradinspect.checks.findings import Findings
from gradinspect.checks.registry import registry
from gradinspect.checks.settings import selection_of
from gradinspect.checks.verdict import can_find, without_comments, without_known
from gradinspect.cli.options.project import Project, name_of_program, relative_names
from gradinspect.cli.options.report_options import Format, ReportOptions
from gradinspect.cli.output.baselines import open_baseline, save_baseline
from gradinspect.cli.output.bug_report import version_of
from gradinspect.cli.output.console import print_lines, terminal_page
from gradinspect.cli.output.files import check_target, suffix_of, write_content
from gradinspect.cli.output.printing import is_silent, print_text
from gradinspect.renderers.data.findings.findings import FINDINGS, render_findings_github
from gradinspect.renderers.data.findings.sarif import render_findings_sarif
from gradinspect.renderers.data.table import render_figures
from gradinspect.renderers.terminal.findings import FindingsPage
from gradinspect.request import Request

SUFFIXES: Final[dict[str, Format]] = {".sarif": "sarif", ".json": "json"}


class FindingsReport:
    """Reports once, when the program has ended or is about to."""

    def __init__(self, request: Request, project: Project, options: ReportOptions, *, gradcheck: bool) -> None:
        """Check what is asked, before anything runs.

        Args:
            request: What is run.
            project: Where it belongs.
            options: What the command line says.
            gradcheck: Whether custom Functions are checked.

        Raises:
            GradInspectError: A code is unknown, or a file cannot be read or written.
        """
        self.has_findings = False  # that are reported
        self._version = version_of("gradinspect")  # the program may change where packages are looked for
        self._options = options
        self._project = project
        self._program = name_of_program(request, project.root)
        self.selection = selection_of(project.settings, options.select, options.skip, gradcheck=gradcheck)
        self._baseline_file = options.baseline or project.settings.baseline
        self._baseline = open_baseline(self._baseline_file, writes=options.writes_baseline)
        self._targets = [(_format_of(path, force=options.force), path) for path in options.output]

    def __call__(self, found: Findings) -> None:
        """Report on what was found; only the first of several ranks does."""
        if found.rank or is_silent():
            return
        names = relative_names(found.files, self._project.root)
        found = self._without_known(without_comments(found, self.selection, names))
        self.has_findings = bool(found.findings)
        try:
            self._print(found)
        finally:  # also if the reader of standard output has left
            for kind, path in self._targets:
                write_content(path, self._text(found, kind).encode(), force=self._options.force)

    def _without_known(self, found: Findings) -> Findings:
        """Keep what the baseline does not have, and write it anew if that is asked."""
        path, baseline = self._baseline_file, self._baseline
        if path is None or baseline is None:
            return found
        if self._options.writes_baseline:
            names = relative_names(found.files, self._project.root)
            can = can_find(found, self.selection)
            before = baseline
            baseline = updated(before, found.findings, program=self._program, path_of=names, can_find=can)
            save_baseline(path, before, baseline, self._program)
        return without_known(found, self.selection, baseline, program=self._program, name=path.name)

    def _print(self, found: Findings) -> None:
        if self._options.format != "text":
            text = self._text(found, self._options.format)
            if text:
                print_text(text)
            return
        page = terminal_page(FindingsPage)
        print_lines(page.lines(found))

    def _text(self, found: Findings, kind: Format) -> str:
        path_of = relative_names(found.files, self._project.repository)
        if kind == "json":
            return render_figures(found, FINDINGS)
        if kind == "github":
            return render_findings_github(found, path_of)
        rules = list(registry().rules.values())
        return render_findings_sarif(found, rules, path_of, version=self._version, program=self._program)


def _format_of(path: Path, *, force: bool) -> Format:
    """Determine the format of a file, and check that it can be written.

    Raises:
        GradInspectError: Its suffix is unknown, or it cannot.
    """
    found = SUFFIXES[suffix_of(path, SUFFIXES)]
    check_target(path, force=force)
    return found
