"""Run a program once for each plan, each time in a process of its own, and bring back what was seen."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import TypeVar, cast

import msgspec

from gradinspect.analyses.planning.changes import NO_CHANGE, Plan
from gradinspect.analyses.planning.planned_steps import PlannedSteps, outcome_of
from gradinspect.analyses.planning.search import Outcome
from gradinspect.analyses.planning.trial import RealSteps
from gradinspect.cli import questions
from gradinspect.cli.reporting import import_session
from gradinspect.errors import INTERRUPTED, GradInspectError, ScriptFailedError
from gradinspect.graph import Record
from gradinspect.isolation import Imports
from gradinspect.request import Request
from gradinspect.runner.forked import Send, load_for_children, run_forked
from gradinspect.source import Program

T = TypeVar("T", bound=Record)


class _Refused(Record, frozen=True):
    """A run that had nothing to report: an error that the user can fix, or a program that failed."""

    message: str
    hint: str = ""
    exit_code: int = 0  # of a program that failed


class PlannedRuns:
    """Runs one program again and again."""

    def __init__(self, request: Request, num_steps: int) -> None:
        """Import torch as the program would, once for all runs."""
        self._request = request
        self._num_steps = num_steps
        self._imports = Imports()
        self._session: ModuleType = import_session(self._imports, cast("Program", request.source), request)
        load_for_children()

    def plain(self) -> PlannedSteps:
        """Run the program as it is, on fake tensors; it may print.

        Raises:
            GradInspectError: There was nothing to see.
            ScriptFailedError: The program failed.
        """
        return self._run(questions.planned_steps(self._num_steps, NO_CHANGE), self._request, PlannedSteps)

    def measure(self, plan: Plan) -> Outcome:
        """Run a plan on fake tensors."""
        try:
            steps = self._run(
                questions.planned_steps(self._num_steps, plan), self._request, PlannedSteps, is_silent=True
            )
        except (GradInspectError, ScriptFailedError) as error:
            return Outcome(plan=plan, failure=str(error))
        return outcome_of(plan, steps)

    def real_memory(self, plan: Plan) -> PlannedSteps:
        """Run a plan with values, and measure what the allocator gives out."""
        return self._run(
            questions.planned_steps(self._num_steps, plan), self._with_values(), PlannedSteps, is_silent=True
        )

    def real_steps(self, plan: Plan) -> RealSteps:
        """Run a plan with values, for its times and its gradients."""
        return self._run(
            questions.real_steps(self._num_steps + 1, plan), self._with_values(), RealSteps, is_silent=True
        )

    def _with_values(self) -> Request:
        return replace(self._request, fake=False, answers_reads=False, hint=None)

    def _run(self, question: "questions.Question[T]", request: Request, kind: type[T], *, is_silent: bool = False) -> T:
        sent, status = run_forked(lambda send: self._in_child(question, request, send), is_silent=is_silent)
        if not sent:
            ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise ScriptFailedError(f"A run of '{request.label}' {ended} before it could be reported.")
        if sent.startswith(b"-"):
            refused = msgspec.json.decode(sent[1:], type=_Refused)
            if refused.exit_code == INTERRUPTED:
                raise KeyboardInterrupt
            if refused.exit_code:
                raise ScriptFailedError(refused.message, refused.exit_code)
            raise GradInspectError(refused.message, refused.hint)
        return msgspec.json.decode(sent[1:], type=kind)

    def _in_child(self, question: "questions.Question[T]", request: Request, send: Send) -> None:
        """Run the program, and send its result, also if it leaves without coming back."""
        try:
            self._deliver(question, request, lambda result: send(b"+" + msgspec.json.encode(result)))
        except GradInspectError as error:
            send(b"-" + msgspec.json.encode(_Refused(message=error.message, hint=error.hint)))
        except ScriptFailedError as error:
            send(b"-" + msgspec.json.encode(_Refused(message=str(error), exit_code=error.exit_code)))
        except KeyboardInterrupt:
            send(b"-" + msgspec.json.encode(_Refused(message="", exit_code=INTERRUPTED)))

    def _deliver(self, question: "questions.Question[T]", request: Request, deliver: Callable[[T], None]) -> None:
        program = cast("Program", request.source)
        run = self._session.Session(program, request, question.observe, self._imports, deliver, _nothing)
        result = run.run()
        if run.exit_code:
            raise ScriptFailedError(run.failure or "", run.exit_code)
        if not run.is_delivered:
            deliver(result)


def _nothing() -> None:
    """Do nothing at a backward call."""
