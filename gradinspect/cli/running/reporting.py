"""Run what a request asks for, and report on the result."""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import gradinspect
from gradinspect.cli.running.questions import Question
from gradinspect.cli.running.ranks import RankedAnswer, presence
from gradinspect.cli.running.sign_of_life import sign_of_life
from gradinspect.cli.verbs import VERBS
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.isolation import Imports
from gradinspect.request import Request
from gradinspect.source import CaptureFile, Program, first_folder
from gradinspect.units import escape_control

if TYPE_CHECKING:
    from gradinspect.graph import Graph
    from gradinspect.ranks.presence import Presence


T = TypeVar("T")

_OF_A_VERB = (  # it, its question or the session imports what it needs of these, before the program runs
    "cli.options",
    "cli.output",
    "cli.running",
    *(f"cli.{verb}" for verb in VERBS),
    "fake",
    "observers",
)
_FOR_OTHERS = ("__main__", "api", "explorer", "notebook", "pytest_plugin", "testing", "trainers")
_FOR_SOME = (  # that a question names, or that are imported when the files to write are known
    "analyses.diff",
    "analyses.planning",
    "checks.evidence",
    "checks.rules",
    "renderers.data.diff",
    "renderers.data.graph_xml",
    "renderers.data.mermaid",
    "renderers.data.model_explorer",
    "renderers.data.plan",
    "renderers.diff_words",
    "renderers.html",
    "renderers.picture",
    "renderers.terminal.diff",
    "renderers.terminal.memory.plan",
    "renderers.terminal.memory.sizes",
)


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
        RankedAnswer(here, question, report).run(lambda deliver: answer(request, question, deliver, here))


def answer(
    request: Request, question: Question[T], report: Callable[[T], None], here: "Presence | None" = None
) -> None:
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
    program = request.source
    if isinstance(program, CaptureFile):
        report(cast("T", _read(program.path, request.label, gradients=question.needs_gradients)))
        return
    with sign_of_life(escape_control(request.label)) as sign:

        def report_alone(result: T) -> None:
            sign.end()
            report(result)

        def call_reached() -> None:
            sign.call_reached()
            if here is not None:
                here.call_reached()

        _run(request, question, report_alone, call_reached, here)


def _run(
    request: Request,
    question: Question[T],
    report: Callable[[T], None],
    call_reached: Callable[[], None],
    here: "Presence | None",
) -> None:
    """Run a program, and report on what was found."""
    program = cast("Program", request.source)
    imports = Imports()
    packages = question.packages if here is None else (*question.packages, "analyses.diff")
    session = import_session(imports, program, request, packages)
    run = session.Session(program, request, question.observe, imports, report, call_reached)
    if here is not None:
        here.watch_program(session.whereabouts, None if request.goes_on else run.stop_from_outside)
        if not question.stops_together:
            run.stop_when(here.may_stop)
    try:
        result = run.run()
    except GradInspectError as error:
        if not run.exit_code:
            raise
        raise ScriptFailedError(str(error), run.exit_code) from None
    if not run.is_delivered:
        report(result)
    if run.exit_code:
        raise ScriptFailedError(run.failure or "", run.exit_code)


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


def _read(path: Path, label: str, *, gradients: bool) -> "Graph":
    from gradinspect.storage import read_graph  # noqa: PLC0415  # not needed for --help

    graph = read_graph(path)
    if gradients and graph.gradients is None:
        raise GradInspectError(
            f"'{label}' was captured without gradients.",
            "Give a program to run, or export it again with --gradients.",
        )
    return graph


def import_session(imports: Imports, program: Program, request: Request, packages: Sequence[str] = ()) -> ModuleType:
    """Import torch as the program would, then all that we need later, before the program can interfere.

    It takes over a second, and torch may not be installed if only capture files are read.

    Args:
        imports: Keeps ours and the program's apart.
        program: What will run.
        request: Its other options.
        packages: Those of ours that only some questions need.
    """
    try:
        imports.import_as_program("torch", first_folder(program))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise GradInspectError(
                "Running a program needs PyTorch, which is not installed.",
                "Install it (pip install torch), or give a capture file.",
            ) from None
        raise _torch_import_error(imports, program, request, error) from None
    import_for_reports(packages)
    from gradinspect.runner import session  # noqa: PLC0415

    return session


def _torch_import_error(imports: Imports, program: Program, request: Request, error: BaseException) -> Exception:
    """Let the program fail by itself, if a file next to it shadows a module that torch needs."""
    from gradinspect.runner.process_state import ProcessState  # noqa: PLC0415  # not needed for --help
    from gradinspect.runner.torchless import run_without_torch  # noqa: PLC0415  # as above

    failure = run_without_torch(program, request.arguments, ProcessState(imports), error)
    sentence = f"PyTorch cannot be imported by '{request.label}': {type(error).__name__}."
    return ScriptFailedError(sentence) if failure else GradInspectError(sentence, "Does this program use PyTorch?")


def import_for_reports(packages: Sequence[str] = (*_OF_A_VERB, *_FOR_SOME)) -> None:
    """Import what a report may need, except what only others use, whose dependencies may be missing.

    Args:
        packages: Those that are needed, of the ones that only some verbs or questions need.
    """
    left_out = tuple(f"gradinspect.{name}" for name in (*_FOR_OTHERS, *({*_OF_A_VERB, *_FOR_SOME} - {*packages})))
    for module in pkgutil.walk_packages(gradinspect.__path__, "gradinspect."):
        if not module.name.startswith(left_out):
            importlib.import_module(module.name)
