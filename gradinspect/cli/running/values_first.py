"""Watch steps on fake tensors; where values are needed, run the program with values first, and read those again.

NOTE [Runs for values]
`fit` runs a program on fake tensors, in this process. If that has read values which are not known, or has made sizes of
them, then the program is run twice more, in copies of a process of its own: as it is, for what it reads, and on fake
tensors again, which read it. A program that cannot be run with values is refused, or its bound is reported, as ever. If
it fails by itself with values, and would be refused, then its own error is shown, as that of a real run: no number to
answer with would help. A lack of memory, or of a device, is not its own: fake tensors need neither. Nor is an error
before anything was read: the program did not fail there on fake tensors, and may not be able to run twice.
"""

import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from gradinspect.analyses.memory.step import StepMemory
from gradinspect.cli.output.printing import print_message
from gradinspect.cli.running import questions
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.cli.running.own_process import run_own_process
from gradinspect.cli.running.pipeline import report_on
from gradinspect.cli.running.ranks import presence
from gradinspect.errors import GradInspectError, MissingValuesError, ScriptFailedError
from gradinspect.graph import Record
from gradinspect.reads import ReadValues
from gradinspect.request import Request
from gradinspect.source import STDIN, Script

_OF_THE_MACHINE = ("MemoryError", "allocate memory", "start new thread", "CUDA", "NVIDIA", "accelerator")  # of errors


class AnswerWithValues(Record, frozen=True):
    """What came of the runs for values: what steps need, or how the program failed by itself, or nothing."""

    memory: StepMemory | None = None
    failure: str = ""
    exit_code: int = 0
    trace: str = ""


def report_step_memory(request: Request, num_steps: int, report: Callable[[StepMemory], None]) -> None:
    """Report what training steps need. NOTE [Runs for values].

    Raises:
        GradInspectError: There is nothing to report on.
        ScriptFailedError: The program failed; what was seen before is reported.
    """

    def report_found(memory: StepMemory) -> None:
        report((_with_values(request, num_steps).memory if memory.is_bound else None) or memory)

    try:
        report_on(request, questions.step_memory(num_steps), report_found)
    except MissingValuesError:
        found = _with_values(request, num_steps)
        if found.exit_code:
            for line in found.trace.splitlines():
                print_message(line)
            raise ScriptFailedError(found.failure, found.exit_code) from None
        if found.memory is None:
            raise
        report(found.memory)


def values_of(runs: ForkedRuns, request: Request, num_steps: int, *, tells: bool = True) -> ReadValues | None:
    """Run the program of a request with values, and say so; return what it reads, None if it cannot be run so."""
    try:
        return _read_values(runs, request, num_steps, tells=tells)
    except (GradInspectError, ScriptFailedError):
        return None


def _read_values(runs: ForkedRuns, request: Request, num_steps: int, *, tells: bool) -> ReadValues | None:
    """Run the program with values.

    Raises:
        GradInspectError: There was nothing to see.
        ScriptFailedError: The program failed, or was ended.
    """
    if not _may_run_for_values(request):
        return None
    real = replace(request, fake=False, answers_reads=False, goes_on=False, counts_as_cuda=False)
    if tells:
        print_message(f"running '{request.label}' with values, for what it reads")
    return runs.run(real, questions.read_values(num_steps), ReadValues, is_silent=True)


class StepRuns:
    """Watches steps of one request after the other on fake tensors, silently; with values, once any has needed them."""

    def __init__(self, runs: ForkedRuns, num_steps: int) -> None:
        """Start without values.

        Args:
            runs: Of the program.
            num_steps: To watch.
        """
        self._runs = runs
        self._num_steps = num_steps
        self._needs_values = False

    def memory(self, request: Request) -> StepMemory:
        """Return what steps need. NOTE [Runs for values].

        Raises:
            GradInspectError: There was nothing to see.
            ScriptFailedError: The program failed, or was ended.
        """
        if self._needs_values:
            return self._replayed(request) or self._fake(request)
        try:
            memory = self._fake(request)
        except MissingValuesError:
            replayed = self._replayed(request)
            if replayed is None:
                raise
            return replayed
        return (self._replayed(request) if memory.is_bound else None) or memory

    def _fake(self, request: Request) -> StepMemory:
        return self._runs.run(request, questions.step_memory(self._num_steps), StepMemory, is_silent=True)

    def _replayed(self, request: Request) -> StepMemory | None:
        is_first, self._needs_values = not self._needs_values, True
        return _replayed(self._runs, request, self._num_steps, tells=is_first)


def _replayed(runs: ForkedRuns, request: Request, num_steps: int, *, tells: bool = True) -> StepMemory | None:
    """Watch steps that read the values of real ones; None if the program cannot be run with values."""
    reads = values_of(runs, request, num_steps, tells=tells)
    return None if reads is None else _replay(runs, request, num_steps, reads)


def _replay(runs: ForkedRuns, request: Request, num_steps: int, reads: ReadValues) -> StepMemory:
    """Watch steps on fake tensors that read what was read."""
    return runs.run(replace(request, reads=reads), questions.step_memory(num_steps), StepMemory, is_silent=True)


def _may_run_for_values(request: Request) -> bool:
    """Return whether values are wanted, and one process can have them, in one more run."""
    is_whole = request.job is None and presence() is None
    return request.answers_reads and request.hint is None and is_whole and request.source != Script(STDIN)


def _with_values(request: Request, num_steps: int) -> AnswerWithValues:
    """Have a process of its own answer, if it can."""
    if not _may_run_for_values(request) or not hasattr(os, "fork"):
        return AnswerWithValues()
    with tempfile.TemporaryDirectory(prefix="gradinspect-") as folder:
        given, answered = Path(folder, "request"), Path(folder, "memory")
        given.write_bytes(pickle.dumps((replace(request, goes_on=False), str(answered), num_steps)))
        with suppress(OSError):
            run_own_process(given, reads_stdin=False)
        if not answered.is_file():
            return AnswerWithValues()
        return msgspec.json.decode(answered.read_bytes(), type=AnswerWithValues)


def answer_with_values(request: Request, num_steps: int) -> AnswerWithValues:
    """Watch steps with the values of real ones, in copies of this process, if that can be done."""
    runs = ForkedRuns(request)
    try:
        reads = _read_values(runs, request, num_steps, tells=True)
    except GradInspectError:
        return AnswerWithValues()
    except ScriptFailedError as error:
        return _failure_of(error)
    try:
        return AnswerWithValues(memory=None if reads is None else _replay(runs, request, num_steps, reads))
    except (GradInspectError, ScriptFailedError) as error:
        print_message(f"that gave no answer: {error}")
        return AnswerWithValues()


def _failure_of(error: ScriptFailedError) -> AnswerWithValues:
    """Return how a program failed, if it did so by itself. NOTE [Runs for values]."""
    is_own = error.trace and not any(word in error.trace for word in _OF_THE_MACHINE)
    if not is_own:
        return AnswerWithValues()
    return AnswerWithValues(failure=str(error), exit_code=error.exit_code, trace=error.trace)
