"""The way from a SOURCE to a report, which every verb takes that reads a program or a capture file.

`gradinspect trace train.py`: `cli/trace.py` reads the options, asks `questions.graph()` and comes here, to `report_on`.
What is called `report` here is a function of the verb again: that of `trace` counts what is in the graph (`analyses/`),
writes its tree (`renderers/terminal/`) and prints it (`cli/output/`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from gradinspect.cli.running.leaving import note_stop
from gradinspect.cli.running.own_imports import import_packages, import_session, without_collections
from gradinspect.cli.running.questions import Question
from gradinspect.cli.running.ranks import RankedAnswer, presence
from gradinspect.cli.running.sign_of_life import SignOfLife, sign_of_life
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.graph import Graph
from gradinspect.isolation import Imports
from gradinspect.ranks.presence import Presence, Where
from gradinspect.request import Request
from gradinspect.source import CaptureFile, Program
from gradinspect.storage import read_graph
from gradinspect.units import escape_control

T = TypeVar("T")


def report_on(request: Request, question: Question[T], report: Callable[[T], None]) -> None:
    """Get a result, from a capture file or by running the program, and report on it, once for all ranks of a job.

    Args:
        request: What to run, and when to look.
        question: What to look for.
        report: Reports on the result.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailedError: The program failed; what was recorded before is reported.
    """
    check_fits(request, question)
    here = presence()
    if here is None or isinstance(request.source, CaptureFile):
        answer(request, question, report)
    else:
        import_packages(("analyses.diff",))  # of what compares ranks, before a program runs that could interfere
        RankedAnswer(here, question, report).run(lambda deliver: answer(request, question, deliver, here))


def answer(request: Request, question: Question[T], report: Callable[[T], None], here: Presence | None = None) -> None:
    """Get a result in this process, and report on it.

    Args:
        request: What to run, and when to look.
        question: What to look for.
        report: Reports on the result.
        here: What shows other ranks where the program is.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailedError: The program failed; what was recorded before is reported.
    """
    program = request.source  # a script, a module, an expression or a capture file: `source.py`
    if isinstance(program, CaptureFile):
        report(cast("T", _read(program.path, request.label, gradients=question.needs_gradients)))  # `storage/`
        return
    with sign_of_life(escape_control(request.label)) as sign:
        _run(request, program, question, report, _Signs(sign, here))


def _run(
    request: Request, program: Program, question: Question[T], report: Callable[[T], None], signs: "_Signs"
) -> None:
    """Run a program, and report on what was found."""

    def report_alone(result: T) -> None:
        signs.end()
        report(result)  # `analyses/` look at it, or `checks/rules/`; `renderers/` write, and `cli/output/` prints

    imports = Imports()  # our modules apart from those of the program: `isolation.py`
    session = import_session(imports, program, request)  # torch, as the program would import it; then ours
    make_observer = question.observe  # what looks at each backward call: `observers/`, or `checks/evidence/`
    with without_collections():
        run = session.Session(program, request, make_observer, imports, report_alone, signs.call_reached)
    signs.watch(run, session.whereabouts, goes_on=request.goes_on, stops_together=question.stops_together)
    result = _result_of(run)
    if not run.is_delivered:
        report_alone(result)
    if run.exit_code or run.failure:
        raise ScriptFailedError(run.failure or "", run.exit_code)


def _result_of(run: Any) -> Any:  # noqa: ANN401  # a `Session` and its result; the class needs torch
    """Run the program, and return what the observer has made of it.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailedError: Nor did the program end well.
    """
    try:
        return run.run()  # `runner/` runs it; `recording/` makes a `Graph` of what it holds, through `torch_api/`
    except GradInspectError as error:
        if not run.exit_code:
            raise
        raise ScriptFailedError(str(error), run.exit_code) from None
    finally:
        if run.was_stopped:
            note_stop()


def check_fits(request: Request, question: Question[Any]) -> None:
    """Check that the request can be fulfilled.

    Raises:
        GradInspectError: The source or an option rules it out.
    """
    if isinstance(request.source, CaptureFile):
        if question.a_capture_cannot:
            raise GradInspectError(
                f"'{request.label}' is a capture of one moment: it can't {question.a_capture_cannot}.",
                "Give a program to run.",
            )
        return
    if question.needs_values and request.fake:
        raise GradInspectError(
            "'--fake' makes tensors without values, so there is no gradient to look at.", "Remove this option."
        )
    if question.needs_backward and request.creates_graph:
        raise GradInspectError(
            "'--create-graph' selects the graph that backward builds, but this command observes the backward itself.",
            "Remove this option.",
        )
    if question.needs_backward and request.at in {"end", "call"}:
        raise GradInspectError(
            f"'--at {request.at}' selects tensors outside any backward call, but this command observes the program's "
            "own backward.",
            f"Remove --at {request.at}.",
        )


def _read(path: Path, label: str, *, gradients: bool) -> Graph:
    graph = read_graph(path)
    if gradients and graph.gradients is None:
        raise GradInspectError(
            f"'{label}' was captured without gradients.",
            "Give a program to run, or export it again with --gradients.",
        )
    return graph


class _Signs:
    """What shows that a program runs: to the user, and to the other ranks of a job."""

    def __init__(self, sign: SignOfLife, here: Presence | None) -> None:
        self._here = here
        self.end = sign.end
        self._call_reached = sign.call_reached

    def call_reached(self) -> None:
        """Note a backward call."""
        self._call_reached()
        if self._here is not None:
            self._here.call_reached()

    def watch(self, run: Any, whereabouts: Where, *, goes_on: bool, stops_together: bool) -> None:  # noqa: ANN401  # as above
        """Show the other ranks where the program is, and stop it together with them."""
        if self._here is None:
            return
        self._here.watch_program(whereabouts, None if goes_on else run.stop_from_outside)
        if not stops_together:
            run.stop_when(self._here.may_stop)
