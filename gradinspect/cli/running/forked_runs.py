"""Run a program again and again, each time in a process of its own, and bring back what was seen."""

import traceback
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar, cast

import msgspec

from gradinspect.cli.output.bug_report import bug_sentence
from gradinspect.cli.running.own_imports import import_packages, import_session
from gradinspect.cli.running.questions import Question
from gradinspect.errors import INTERRUPTED, GradInspectError, InternalError, MissingValuesError, ScriptFailedError
from gradinspect.graph import Record
from gradinspect.isolation import Imports
from gradinspect.kept_files import run as kept_files
from gradinspect.request import Request
from gradinspect.runner.branches import Branches, WaitingRun
from gradinspect.runner.forked import Send, device_is_lost, load_for_children, run_forked
from gradinspect.source import Program
from gradinspect.units import escape_control

T = TypeVar("T", bound=Record)


_NO_DEVICE = (
    "The program failed, and the device cannot be used by copies of this process: something had used it before the "
    "program began, such as sitecustomize.",
    "Remove that, or run the program once: fit --real.",
)


class _Refused(Record, frozen=True):
    """A run that had nothing to report: an error that the user can fix, or a program that failed."""

    message: str
    hint: str = ""
    exit_code: int = 0  # of a program that failed
    lacks_values: bool = False
    trace: str = ""  # of a program that failed


class _Bug(Record, frozen=True):
    """A run in which we failed ourselves."""

    sentence: str
    trace: str


class ForkedRuns:
    """Runs one program."""

    def __init__(self, request: Request) -> None:
        """Import torch as the program would, once for all runs.

        Args:
            request: What will run.
        """
        if request.fake or request.keeps_files:
            kept_files.begin()
        self._imports = Imports()
        self._session: ModuleType = import_session(self._imports, cast("Program", request.source), request)
        import_packages(("fake", "observers"))  # else each child imports them
        load_for_children()

    def run(self, request: Request, question: Question[T], kind: type[T], *, is_silent: bool = False) -> T:
        """Run a request, and get its result.

        Args:
            request: What to run: the program that was given, perhaps with other options.
            question: What to look for.
            kind: The type of the result.
            is_silent: Whether to hide all that the program prints.

        Raises:
            GradInspectError: There was nothing to see.
            ScriptFailedError: The program failed, or was ended.
            InternalError: We failed.
        """
        sent, status = run_forked(lambda send: self._in_child(question, request, send), is_silent=is_silent)
        return result_of(request, kind, sent, status)

    def waiting(self, request: Request, ask: Callable[[Branches], Question[T]], *, is_silent: bool) -> WaitingRun:
        """Start a run that may wait, and go on in copies. NOTE [What copies of a process share]."""
        return WaitingRun(
            lambda send, branches: self._in_child(ask(branches), request, send),
            is_silent=is_silent,
        )

    def _in_child(self, question: Question[T], request: Request, send: Send) -> None:
        """Run the program, and send its result, also if it leaves without coming back."""
        try:
            self._deliver(question, request, lambda result: send(b"+" + msgspec.json.encode(result)))
        except GradInspectError as error:
            lacks_values = isinstance(error, MissingValuesError)
            send(b"-" + msgspec.json.encode(_refused(error.message, error.hint, lacks_values=lacks_values)))
        except ScriptFailedError as error:
            lost = device_is_lost()
            failed = _refused(str(error), exit_code=error.exit_code, trace=error.trace)
            refused = _refused(*_NO_DEVICE) if lost else failed
            send(b"-" + msgspec.json.encode(refused))
        except KeyboardInterrupt:
            send(b"-" + msgspec.json.encode(_refused("", exit_code=INTERRUPTED)))
        except Exception as error:
            trace = traceback.format_exc().encode(errors="backslashreplace").decode()  # names may have lone surrogates
            send(b"!" + msgspec.json.encode(_Bug(sentence=bug_sentence(error), trace=trace)))

    def _deliver(self, question: Question[T], request: Request, deliver: Callable[[T], None]) -> None:
        program = cast("Program", request.source)
        run = self._session.Session(program, request, question.observe, self._imports, deliver, _nothing)
        result = run.run()
        if run.exit_code:
            raise ScriptFailedError(run.failure or "", run.exit_code, run.failure_trace)
        if not run.is_delivered:
            deliver(result)


def result_of(request: Request, kind: type[T], sent: bytes, status: int) -> T:
    """Read what a run has sent.

    Raises:
        GradInspectError: There was nothing to see.
        ScriptFailedError: The program failed, or was ended.
        InternalError: We failed.
    """
    if not sent:
        ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise ScriptFailedError(f"A run of '{request.label}' {ended} before it could be reported.")
    if sent.startswith(b"!"):
        bug = msgspec.json.decode(sent[1:], type=_Bug)
        raise InternalError(bug.sentence, bug.trace)
    if sent.startswith(b"-"):
        refused = msgspec.json.decode(sent[1:], type=_Refused)
        if refused.exit_code == INTERRUPTED:
            raise KeyboardInterrupt
        if refused.exit_code:
            raise ScriptFailedError(refused.message, refused.exit_code, refused.trace)
        kind_of_error = MissingValuesError if refused.lacks_values else GradInspectError
        raise kind_of_error(refused.message, refused.hint)
    return msgspec.json.decode(sent[1:], type=kind)


def _refused(
    message: str, hint: str = "", exit_code: int = 0, *, lacks_values: bool = False, trace: str = ""
) -> _Refused:
    """Write an error so that it can be sent: names may have lone surrogates."""
    return _Refused(
        message=escape_control(message),
        hint=escape_control(hint),
        exit_code=exit_code,
        lacks_values=lacks_values,
        trace="\n".join(map(escape_control, trace.splitlines())),
    )


def _nothing() -> None:
    """Do nothing at a backward call."""
