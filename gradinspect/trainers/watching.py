"""What the callbacks share: check the first steps of a training, and record the graph of one step."""

import os
import sys

from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.findings import Findings
from gradinspect.checks.verdict import Selection, without_comments
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.library.files import save
from gradinspect.live.checking import MOST_STEPS
from gradinspect.live.session import LiveSession
from gradinspect.observers.graphs.graphs_observer import GraphsObserver


class TrainingWatch:
    """Is told of the steps of a training. Nothing stays patched after the last step that is watched.

    Attributes:
        findings: What is wrong with the first steps, once they are done; also printed to stderr.
        graph: The graph of the first backward call of the step that was asked for.
    """

    def __init__(self, *, checks: bool, capture_step: int | None, save_to: str | os.PathLike[str] | None) -> None:
        """Choose what to do.

        Args:
            checks: Check the first steps.
            capture_step: Record the graph of this step; 1 is the first.
            save_to: Write that graph to this file, in the format of its suffix.

        Raises:
            GradInspectError: There is a file, and no step whose graph it should have.
        """
        if save_to is not None and capture_step is None:
            raise GradInspectError(f"'{os.fspath(save_to)}' has no step to record.", "Say which step: capture_step=1.")
        self.findings: Findings | None = None
        self.graph: Graph | None = None
        self._checks = checks
        self._capture_step = capture_step
        self._save_to = save_to
        self._label = "training"
        self._step = 0
        self._checking: LiveSession[Findings] | None = None
        self._capturing: LiveSession[tuple[Graph, ...]] | None = None

    def training_begins(self, label: str) -> None:
        """Begin to check."""
        self._label = label
        if self._checks:
            self._checking = LiveSession(lambda run: ChecksObserver(run, None), label).__enter__()

    def step_begins(self) -> None:
        """Begin to record if this is the step."""
        self._step += 1
        if self._step == self._capture_step:
            self._end_check()
            self._capturing = LiveSession(lambda run: GraphsObserver(run, 1), self._label).__enter__()

    def step_ends(self) -> None:
        """Stop what is done."""
        self._end_capture()
        if self._checking is not None and (self._checking.observer.has_enough or self._step >= MOST_STEPS):
            self._end_check()

    def training_ends(self) -> None:
        """Stop everything, also after an error."""
        self._end_capture()
        self._end_check()

    def _end_check(self) -> None:
        session, self._checking = self._checking, None
        if session is not None:
            session.__exit__(None, None, None)
            found = session.result()
            if found is not None:
                self.findings = without_comments(found, Selection(), lambda file: file)
                print(self.findings, file=sys.stderr)

    def _end_capture(self) -> None:
        session, self._capturing = self._capturing, None
        if session is not None:
            session.__exit__(None, None, None)
            self.graph = next(iter(session.result() or ()), None)
            if self._save_to is not None and self.graph is not None:
                save(self.graph, self._save_to, overwrite=True)
