"""The options of verbs that watch whole training steps, and what they check."""

from math import inf, isfinite
from typing import Annotated, TypeAlias

import typer

from gradinspect.cli.options.help import RUN
from gradinspect.errors import GradInspectError
from gradinspect.ranks.job import this_job
from gradinspect.request import Request
from gradinspect.source import STDIN, CaptureFile, Script
from gradinspect.units import parse_bytes

VALUES_HINT = "Run with --real, or give the number to answer with: --hint 1."
SIZES_HINT = "Run with --real."
NumSteps: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="Training steps to watch.")]
Hint: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="Answer what reads a value, such as 'if loss > 3'.", rich_help_panel=RUN),
]


def check_can_run_again(request: Request, what: str) -> None:
    """Check that the program can be run several times.

    Raises:
        GradInspectError: It cannot.
    """
    if isinstance(request.source, CaptureFile):
        raise GradInspectError(
            f"'{request.label}' is a capture of one moment: it can't be run by '{what}'.", "Give a program to run."
        )
    if request.source == Script(STDIN):
        raise GradInspectError(f"'-' can be read only once, and '{what}' runs it several times.", "Give a file.")


def check_runs_alone(what: str) -> None:
    """Check that this process is no rank of a job of several: they meet once, in the first of several runs.

    Raises:
        GradInspectError: It is one.
    """
    job = this_job()
    if job is not None:
        raise GradInspectError(
            f"'{what}' runs the program several times, and the {job.num_ranks} ranks of this job can meet only once.",
            "Start one rank: torchrun --nproc-per-node 1.",
        )


def size_of(option: str, text: str) -> int:
    """Read a limit.

    Raises:
        GradInspectError: It is not a valid size, or zero.
    """
    size = parse_bytes(text)
    if not size:
        raise GradInspectError(f"'{option}' leaves no memory at all.", "Give a size such as 24GiB.")
    return size


def seconds_of(option: str, text: str) -> float:
    """Read a time.

    Raises:
        GradInspectError: It is not a time.
    """
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise GradInspectError(f"'{option}' is not a time in seconds.", "Give one such as 60s.")
    return seconds


def check_hint(hint: float | None, *, real: bool = False) -> None:
    """Check that the number can stand for any value.

    Raises:
        GradInspectError: It is not finite, or nothing would ask for it.
    """
    if hint is None:
        return
    if not isfinite(hint):
        raise GradInspectError(f"'--hint {hint}' is not a finite number.", "Give one such as --hint 1.")
    if real:
        raise GradInspectError(f"'--hint {hint:g}' is for fake tensors, and --real has values.", "Remove this option.")


def is_cuda(device: str | None, *, measured_by: str | None) -> bool:
    """Return whether to count as on a GPU.

    Args:
        device: That was asked for.
        measured_by: The option that has the program run with values, if it was given.

    Raises:
        GradInspectError: The allocator of that device is not known, or the run is measured where it is.
    """
    if device is not None and device.partition(":")[0] not in ("cpu", "cuda"):
        raise GradInspectError(f"The allocator of '--device {device}' is not known.", "Give cpu or cuda.")
    if device is not None and measured_by is not None:
        raise GradInspectError(
            f"'--device {device}' is for a prediction, and {measured_by} measures the device of the program.",
            "Remove one.",
        )
    return device is not None and device.startswith("cuda")
