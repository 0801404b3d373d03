"""Keeping every step, to write them as a report."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gradinspect.analyses.explain.explanation import explain_class
from gradinspect.analyses.gradients.stepping import Ending, Step
from gradinspect.cli.files import check_target
from gradinspect.cli.printing import print_message
from gradinspect.errors import GradInspectError
from gradinspect.renderers.terminal.step_report import render_report_html, render_report_markdown
from gradinspect.storage import write_file

if TYPE_CHECKING:
    from gradinspect.catalog import Catalog
    from gradinspect.graph import Graph
    from gradinspect.observers.lockstep import LiveStep

RENDERERS = {".md": render_report_markdown, ".html": render_report_html}


def check_report(path: Path, *, force: bool) -> None:
    """See to it that the report can be written, before anything is run.

    Raises:
        GradInspectError: The suffix is unknown, the folder is missing or closed, or the file is there already.
    """
    if path.suffix.lower() not in RENDERERS:
        raise GradInspectError(f"The format of '{path}' is unknown.", f"End its name in {' or '.join(RENDERERS)}.")
    check_target(path, force=force)


class ReportWriter:
    """Keeps the steps of one run."""

    def __init__(self, catalog: "Catalog", path: Path, *, force: bool) -> None:
        """Remember where to."""
        self._catalog = catalog
        self._path = path
        self._force = force
        self._passes: list[tuple[str, list[Step]]] = []

    def begin(self, graph: "Graph", start: str, talk: Callable[[], AbstractContextManager[None]]) -> bool:  # noqa: ARG002  # the form of a StepListener
        """Begin a pass."""
        self._passes.append((start, []))
        return True

    def ran(self, live: "LiveStep") -> bool:
        """Keep a step."""
        self._passes[-1][1].append(live.step)
        return True

    def write(self, ending: Ending) -> None:
        """Write the file."""
        entries = self._catalog.entries
        names = {node.name for node in ending.graph.nodes if node.name in entries}
        formulas = {name: explain_class(name, self._catalog).gradients for name in sorted(names)}
        render = RENDERERS[self._path.suffix.lower()]
        write_file(self._path, render(ending, self._passes, formulas).encode(), force=self._force)
        print_message(f"Wrote {self._path}")
