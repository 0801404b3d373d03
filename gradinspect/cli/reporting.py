"""From a request to a graph to a report."""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import gradinspect
from gradinspect.cli.questions import Question
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.isolation import Imports
from gradinspect.request import Request
from gradinspect.source import CaptureFile, Program, first_folder

if TYPE_CHECKING:
    from gradinspect.graph import Graph


T = TypeVar("T")


def report_on(request: Request, question: Question[T], report: Callable[[T], None]) -> None:
    """Get an answer, from a capture file or from running the program, and report on it.

    Args:
        request: What to run, and when to look.
        question: What to look for.
        report: Takes the answer.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailedError: The program failed by itself; what was recorded before that is reported.
    """
    _check_fits(request, question)
    program = request.source
    if isinstance(program, CaptureFile):
        report(cast("T", _read(program.path, request.label, gradients=question.needs_gradients)))
        return
    imports = Imports()
    session = _import_session(imports, program, request)
    run = session.Session(program, request, question.observe, imports, report)
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


def _check_fits(request: Request, question: Question[Any]) -> None:
    """Check that what is asked for will be there.

    Raises:
        GradInspectError: An option rules it out.
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
            "'--create-graph' is about the graph that backward builds, and this watches the backward that builds it.",
            "Remove this option.",
        )
    if question.needs_backward and request.at in {"end", "call"}:
        raise GradInspectError(
            f"'--at {request.at}' looks at tensors that no backward goes through, and this watches the program's own "
            "backward.",
            f"Remove --at {request.at}.",
        )


def _read(path: Path, label: str, *, gradients: bool) -> "Graph":
    from gradinspect.storage import read_graph  # noqa: PLC0415  # what --help need not wait for

    graph = read_graph(path)
    if gradients and graph.gradients is None:
        raise GradInspectError(
            f"'{label}' was captured without gradients.",
            "Name a program to run, or make it again with export --gradients.",
        )
    return graph


def _import_session(imports: Imports, program: Program, request: Request) -> ModuleType:
    """Import torch as the program would, then all that we need later, before the program can be in the way.

    It takes over a second, and torch is not there at all where only capture files are read.
    """
    try:
        imports.import_as_program("torch", first_folder(program))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise GradInspectError(
                "Running a program needs PyTorch, which is not installed.",
                "Install it (pip install torch), or name a capture file.",
            ) from None
        raise _torch_is_in_the_way(imports, program, request, error) from None
    _import_all_of_ours()
    from gradinspect.runner import session  # noqa: PLC0415

    return session


def _torch_is_in_the_way(imports: Imports, program: Program, request: Request, error: BaseException) -> Exception:
    """Let the program fail by itself, where a file beside it has the name of a module that torch needs."""
    from gradinspect.runner.process_state import ProcessState  # noqa: PLC0415  # what --help need not wait for
    from gradinspect.runner.torchless import run_without_torch  # noqa: PLC0415  # as above

    failure = run_without_torch(program, request.arguments, ProcessState(imports), error)
    sentence = f"PyTorch cannot be imported by '{request.label}': {type(error).__name__}."
    return ScriptFailedError(sentence) if failure else GradInspectError(sentence, "Does it need PyTorch at all?")


def _import_all_of_ours() -> None:
    """Import what a report may need, except the explorer, which may not be installed."""
    for module in pkgutil.walk_packages(gradinspect.__path__, "gradinspect."):
        if not module.name.startswith(("gradinspect.explorer", "gradinspect.__main__")):
            importlib.import_module(module.name)
