"""Collect every step, and write them as a report."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gradinspect.analyses.explain.explanation import explain_class
from gradinspect.analyses.gradients.stepping import Step, SteppingOutcome
from gradinspect.catalog import Catalog
from gradinspect.cli.output.files import check_target, suffix_of
from gradinspect.cli.output.printing import print_message
from gradinspect.graph import Graph
from gradinspect.renderers.terminal.nodes.step_report import render_report_html, render_report_markdown
from gradinspect.storage import write_file

if TYPE_CHECKING:
    from gradinspect.observers.stepping.lockstep import LiveStep

RENDERERS = {".md": render_report_markdown, ".html": render_report_html}


def check_report(path: Path, *, force: bool) -> None:
    """Check that the report can be written, before anything runs.

    Raises:
        GradInspectError: The suffix is unknown, the folder is missing or not writable, or the file exists.
    """
    suffix_of(path, RENDERERS)
    check_target(path, force=force)


class ReportWriter:
    """Collects the steps of one run."""

    def __init__(self, catalog: Catalog, path: Path, *, force: bool) -> None:
        """Store the target."""
        self._catalog = catalog
        self._path = path
        self._force = force
        self._passes: list[tuple[str, list[Step]]] = []

    def begin(self, graph: Graph, start: str, with_our_stdio: Callable[[], AbstractContextManager[None]]) -> bool:  # noqa: ARG002  # the form of a StepListener
        """Start a pass."""
        self._passes.append((start, []))
        return True

    def ran(self, live: "LiveStep") -> bool:
        """Store a step."""
        self._passes[-1][1].append(live.step)
        return True

    def write(self, outcome: SteppingOutcome) -> None:
        """Write the file."""
        entries = self._catalog.entries
        names = {node.name for node in outcome.graph.nodes if node.name in entries}
        formulas = {name: explain_class(name, self._catalog).gradients for name in sorted(names)}
        render = RENDERERS[self._path.suffix.lower()]
        write_file(self._path, render(outcome, self._passes, formulas).encode(), force=self._force)
        print_message(f"Wrote {self._path}")
