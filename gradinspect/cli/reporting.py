"""From a request to a graph to a report."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradinspect.capture.source import CaptureFile
from gradinspect.cli.request import SourceRequest
from gradinspect.errors import GradInspectError

if TYPE_CHECKING:
    from gradinspect.graph import Graph


class ScriptFailed(Exception):  # noqa: N818  # it is the script's error, and it was printed
    """The user's script failed by itself."""


def report_on(
    request: SourceRequest,
    report: "Callable[[Any], None]",
    *,
    iterations: int | None = None,
    gradients: bool = False,
    steps: int | None = None,
    times: bool = False,
) -> None:
    """Get the graph, from a capture file or from running the program, and report on it.

    Args:
        request: What to run, and when to look.
        report: Takes the `Graph`; the `Growth` if iterations are asked for, the `GradientSteps` if steps are,
            the `Timeline` if times are.
        iterations: Watch so many backward calls instead of recording one.
        gradients: Let backward run and watch the gradients; the graph has them then.
        steps: Watch the gradients of so many backward calls in a row.
        times: Let backward run and time each node.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailed: The program failed by itself; what was recorded before that is reported.
    """
    if isinstance(request.source, CaptureFile):
        if iterations is not None or steps is not None or times:
            what = "no iterations" if iterations is not None else "no times" if times else f"no {steps} steps"
            raise GradInspectError(
                f"'{request.label}' is a capture of one moment, so it has {what}.", "Name a program to run."
            )
        report(_read(request.source.path, request.label, gradients=gradients))
        return
    if (gradients or times) and request.fake:
        raise GradInspectError(
            "'--fake' makes tensors without values, so there is no gradient to look at.", "Leave it out."
        )
    session = _import_session()
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    watched = {"iterations": iterations, "gradients": gradients, "steps": steps, "times": times}
    run = session.Session(session.Request(**values, **watched), report)
    try:
        result = run.run()
    except session.ScriptFailedError as error:
        raise ScriptFailed(str(error)) from None
    report(result)
    if run.failure is not None:
        raise ScriptFailed(run.failure)


def _read(path: Path, label: str, *, gradients: bool) -> "Graph":
    from gradinspect.storage import read_graph  # noqa: PLC0415  # what --help need not wait for

    graph = read_graph(path)
    if gradients and graph.gradients is None:
        raise GradInspectError(
            f"'{label}' was captured without gradients.",
            "Name a program to run, or make it again with export --gradients.",
        )
    return graph


def _import_session() -> ModuleType:
    """Import what needs torch: over a second, and not there at all where only capture files are read."""
    try:
        from gradinspect.capture import session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise GradInspectError(
            "Running a program needs PyTorch, which is not installed.",
            "Install it (pip install torch), or name a capture file.",
        ) from None
    return session
