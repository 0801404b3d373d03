"""From a request to a graph to a report."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gradinspect
from gradinspect.cli.request import SourceRequest
from gradinspect.errors import SCRIPT_FAILED, GradInspectError
from gradinspect.isolation import Imports
from gradinspect.source import CaptureFile, first_folder

if TYPE_CHECKING:
    from gradinspect.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What to watch while the program's own backward runs; nothing: only record the graph."""

    iterations: int | None = None  # how the graph grows over so many backward calls: `Growth`
    gradients: bool = False  # the gradients of each node; the graph has them then
    steps: int | None = None  # the gradients of so many backward calls in a row: `GradientSteps`
    checks: int | None = None  # what is wrong in so many backward calls: `Findings`
    gradcheck: bool = False  # with checks: custom Functions by differences too
    times: bool = False  # the time of each node: `Timeline`
    watcher: Any = None  # a `observers.lockstep.Watcher`, who is told of each node: how the steps ended
    grad_output: str | None = None  # a `observers.synthetic_backward.GradOutput`

    @property
    def what_a_capture_lacks(self) -> str:
        """Say what a capture of one moment does not have; "" if it may have it."""
        if self.iterations is not None:
            return "iterations"
        if self.steps is not None:
            return f"{self.steps} steps"
        if self.checks is not None:
            return "lines that wrote since"
        return "times" if self.times else "values" if self.watcher is not None else ""

    @property
    def needs_values(self) -> bool:
        """Whether fake tensors are of no use."""
        return self.gradients or self.times or self.checks is not None or self.watcher is not None

    @property
    def needs_own_backward(self) -> bool:
        """Whether it is about the program's own backward, not about the graph that one builds."""
        return self.gradients or self.times or self.checks is not None or self.iterations is not None


RECORDED_ONLY = Watched()


class ScriptFailed(Exception):  # noqa: N818  # it is the script's error, and it was printed
    """The user's script failed by itself, or ended with a status that is passed on."""

    def __init__(self, sentence: str, exit_code: int = SCRIPT_FAILED) -> None:
        """Keep what to say, "" for nothing, and the status to end with."""
        super().__init__(sentence)
        self.exit_code = exit_code


def report_on(request: SourceRequest, report: "Callable[[Any], None]", watched: Watched = RECORDED_ONLY) -> None:
    """Get the graph, from a capture file or from running the program, and report on it.

    Args:
        request: What to run, and when to look.
        report: Takes the `Graph`, or what is watched instead.
        watched: What to watch while backward runs.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailed: The program failed by itself; what was recorded before that is reported.
    """
    _check_fits(request, watched)
    if isinstance(request.source, CaptureFile):
        report(_read(request.source.path, request.label, gradients=watched.gradients))
        return
    imports = Imports()
    session = _import_session(imports, request)
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    wanted = {field.name: getattr(watched, field.name) for field in fields(watched)}
    run = session.Session(session.Request(**values, **wanted), imports, report)
    try:
        result = run.run()
    except (session.ProgramFailedError, GradInspectError) as error:
        if isinstance(error, GradInspectError) and not run.exit_code:
            raise
        raise ScriptFailed(str(error), run.exit_code or SCRIPT_FAILED) from None
    if not run.is_delivered:
        report(result)
    if run.exit_code:
        raise ScriptFailed(run.failure or "", run.exit_code)


def _check_fits(request: SourceRequest, watched: Watched) -> None:
    """Check that what is to be watched will be there.

    Raises:
        GradInspectError: An option rules it out.
    """
    if isinstance(request.source, CaptureFile):
        if watched.what_a_capture_lacks:
            raise GradInspectError(
                f"'{request.label}' is a capture of one moment, so it has no {watched.what_a_capture_lacks}.",
                "Name a program to run.",
            )
        return
    if watched.needs_values and request.fake:
        raise GradInspectError(
            "'--fake' makes tensors without values, so there is no gradient to look at.", "Leave it out."
        )
    if watched.needs_own_backward and request.creates_graph:
        raise GradInspectError(
            "'--create-graph' is about the graph that backward builds, and this watches the backward that builds it.",
            "Leave it out.",
        )
    if watched.needs_own_backward and request.at in {"end", "call"}:
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


def _import_session(imports: Imports, request: SourceRequest) -> ModuleType:
    """Import torch as the program would, then all that we need later, before the program can be in the way.

    It takes over a second, and torch is not there at all where only capture files are read.
    """
    try:
        imports.import_as_program("torch", first_folder(request.source))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise GradInspectError(
                "Running a program needs PyTorch, which is not installed.",
                "Install it (pip install torch), or name a capture file.",
            ) from None
        raise _torch_is_in_the_way(imports, request, error) from None
    _import_all_of_ours()
    from gradinspect.runner import session  # noqa: PLC0415

    return session


def _torch_is_in_the_way(imports: Imports, request: SourceRequest, error: BaseException) -> Exception:
    """Let the program fail by itself, where a file beside it has the name of a module that torch needs."""
    from gradinspect.runner.process_state import ProcessState  # noqa: PLC0415  # what --help need not wait for
    from gradinspect.runner.torchless import run_without_torch  # noqa: PLC0415  # as above

    if isinstance(request.source, CaptureFile):  # nothing runs
        return error if isinstance(error, Exception) else GradInspectError(str(error))
    failure = run_without_torch(request.source, request.arguments, ProcessState(imports), error)
    sentence = f"PyTorch cannot be imported by '{request.label}': {type(error).__name__}."
    return ScriptFailed(sentence) if failure else GradInspectError(sentence, "Does it need PyTorch at all?")


def _import_all_of_ours() -> None:
    """Import what a report may need, except the explorer, which may not be installed."""
    for module in pkgutil.walk_packages(gradinspect.__path__, "gradinspect."):
        if not module.name.startswith(("gradinspect.explorer", "gradinspect.__main__")):
            importlib.import_module(module.name)
