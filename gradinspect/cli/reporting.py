"""From a request to a graph to a report."""

from collections.abc import Callable
from dataclasses import fields
from types import ModuleType
from typing import Any, NamedTuple

from gradinspect.capture.source import CaptureFile
from gradinspect.cli.request import SourceRequest
from gradinspect.errors import GradInspectError


class Steps(NamedTuple):
    """Whoever looks at the steps of backward."""

    watcher: Any  # a `capture.lockstep.Watcher`
    grad_output: str | None  # a `capture.own_backward.GradOutput`


class ScriptFailed(Exception):  # noqa: N818  # it is the script's error, and it was printed
    """The user's script failed by itself."""


def report_on(
    request: SourceRequest,
    report: "Callable[[Any], None]",
    *,
    iterations: int | None = None,
    gradients: bool = False,
    steps: "Steps | None" = None,
) -> None:
    """Get the graph, from a capture file or from running the program, and report on it.

    Args:
        request: What to run, and when to look.
        report: Takes the `Graph`; the `Growth`, the `Gradients` or how the steps ended if they are asked for.
        iterations: Watch so many backward calls instead of recording one.
        gradients: Let backward run and watch the gradients.
        steps: Let backward run and tell of each step.

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailed: The program failed by itself; what was recorded before that is reported.
    """
    if isinstance(request.source, CaptureFile):
        from gradinspect.storage import read_graph  # noqa: PLC0415  # what --help need not wait for

        if iterations is not None or gradients or steps is not None:
            what = "no iterations" if iterations is not None else "no gradients"
            raise GradInspectError(
                f"'{request.label}' is a capture of one moment, so it has {what}.", "Name a program to run."
            )
        report(read_graph(request.source.path))
        return
    if request.creates_graph and (gradients or iterations is not None):
        what = "--iterations" if iterations is not None else "grads"
        raise GradInspectError(f"'{what}' watches the program's own backward.", "Leave --create-graph out.")
    if (gradients or steps is not None) and request.fake:
        raise GradInspectError(
            "'--fake' makes tensors without values, so there is no gradient to look at.", "Leave it out."
        )
    session = _import_session()
    values = {field.name: getattr(request, field.name) for field in fields(request)}
    more = {} if steps is None else {"watcher": steps.watcher, "grad_output": steps.grad_output}
    run = session.Session(session.Request(**values, **more, iterations=iterations, gradients=gradients), report)
    try:
        result = run.run()
    except session.ScriptFailedError as error:
        raise ScriptFailed(str(error)) from None
    report(result)
    if run.failure is not None:
        raise ScriptFailed(run.failure)


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
