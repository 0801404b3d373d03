"""What the callbacks share: check the first steps of a training, and record the graph of one step.

NOTE [The training goes on]
A training may have run for days, and the watching is not a part of it. So whatever fails with us while it runs,
a full disk or an error of our own, ends the watching, and is said once on stderr. What was seen until then is kept.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from gradinspect.api.files import save
from gradinspect.api.live.checking import MOST_STEPS
from gradinspect.api.live.session import LiveSession
from gradinspect.checks.evidence.observer import ChecksObserver
from gradinspect.checks.findings import Findings
from gradinspect.checks.verdict import Selection, without_comments
from gradinspect.errors import GradInspectError, text_of
from gradinspect.graph import Graph
from gradinspect.observers.graphs.graphs_observer import GraphsObserver


class TrainingWatch:
    """Watches the steps of a training. Nothing stays patched after the last step that is watched.

    Attributes:
        findings: What is wrong with the first steps, once they are done; also printed to stderr.
        graph: The graph of the first backward call of the step that was asked for.
        problem: What ended the watching early: NOTE [The training goes on].
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
        self.problem: Exception | None = None
        self._checks = checks
        self._capture_step = capture_step
        self._save_to = save_to
        self._label = "training"
        self._step = 0
        self._checking: LiveSession[Findings] | None = None
        self._capturing: LiveSession[tuple[Graph, ...]] | None = None

    def training_begins(self, label: str) -> None:
        """Start checking."""
        self._label = label
        self._try(self._begin)

    def step_begins(self) -> None:
        """Start recording if this is the step."""
        self._step += 1
        self._try(self._begin_step)

    def step_ends(self) -> None:
        """Stop what is done."""
        self._try(self._end_step)

    def training_ends(self) -> None:
        """Stop everything, also after an error."""
        self._try(self._end_capture)
        self._try(self._end_check)

    def _try(self, part: Callable[[], None]) -> None:
        """Do our part, unless an earlier one has failed. NOTE [The training goes on]."""
        if self.problem is not None:
            return
        try:
            part()
        except Exception as error:
            self.problem = error
            for session in (self._checking, self._capturing):
                with suppress(Exception):
                    if session is not None:
                        session.__exit__(None, None, None)
            self._checking = self._capturing = None
            with suppress(Exception):  # stderr may be what has failed
                print(f"gradinspect no longer watches this training, which goes on: {_said(error)}", file=sys.stderr)

    def _begin(self) -> None:
        if self._checks:
            self._checking = LiveSession(lambda run: ChecksObserver(run, None), self._label).__enter__()

    def _begin_step(self) -> None:
        if self._step == self._capture_step:
            self._end_check()
            self._capturing = LiveSession(lambda run: GraphsObserver(run, 1), self._label).__enter__()

    def _end_step(self) -> None:
        self._end_capture()
        if self._checking is not None and (self._checking.observer.has_enough or self._step >= MOST_STEPS):
            self._end_check()

    def _end_check(self) -> None:
        session, self._checking = self._checking, None
        if session is not None:
            session.__exit__(None, None, None)
            try:
                found = session.result()
            except Exception as error:
                self._report(_incomplete(session, error))
                raise
            self._report(found)

    def _report(self, found: Findings | None) -> None:
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


def _incomplete(session: LiveSession[Findings], error: Exception) -> Findings | None:
    """Return what was found before an error of ours."""
    with suppress(Exception):
        found = session.observer.result()
        if found is not None:
            return replace(found, is_complete=False, notes=(*found.notes, f"Not all was looked at: {_said(error)}"))
    return None


def _said(error: Exception) -> str:
    text = " ".join(text_of(error).split())
    return text if isinstance(error, GradInspectError) else f"{type(error).__name__}: {text}"
