"""Run the user's program, and let an observer look at its backward calls."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import getpid
from typing import Any, Generic, TypeVar

import torch

from gradinspect.catalog import load_catalog
from gradinspect.errors import INTERRUPTED, SCRIPT_FAILED, GradInspectError, ScriptFailedError, text_of
from gradinspect.fake.mode import FakeRun, explain_fake_error, explain_largest_size
from gradinspect.fake.ranks import fake_ranks
from gradinspect.fake.read_values import ReplayedReads
from gradinspect.fake.saved_files import announced_writes
from gradinspect.fake.values import AnsweredReads
from gradinspect.graph import CaptureKind
from gradinspect.isolation import Imports, OwnBuiltins
from gradinspect.kept_files import run as kept_files
from gradinspect.recording.frames import is_own_file
from gradinspect.recording.names.instances import freezes_noted
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.outputs import OutputTensor, final_outputs, outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency.release import release_wrappers
from gradinspect.recording.transparency.transparency import stack_patches
from gradinspect.request import Request
from gradinspect.runner.callables.inputs import make_inputs
from gradinspect.runner.callables.output_loss import run_backward
from gradinspect.runner.callables.placement import device_of, move
from gradinspect.runner.engine import CallCounts, EngineInterceptor, missed_notes
from gradinspect.runner.forked import is_output_hidden
from gradinspect.runner.nothing_recorded import hidden_by_errors, nothing_recorded
from gradinspect.runner.observed_calls import ObservedCalls
from gradinspect.runner.observer import MakeObserver
from gradinspect.runner.process_state import ProcessState
from gradinspect.runner.program_handlers import waiting_handlers
from gradinspect.runner.programs.namespaces import (
    base_folder,
    call_of,
    models_in,
    module_of,
    names_on_demand,
    variables_of,
)
from gradinspect.runner.programs.program import (
    ProgramEnd,
    leave_as_python,
    print_error,
    run_program,
    trace_of,
    without_our_frames,
)
from gradinspect.runner.run import Run, named_root
from gradinspect.runner.stopping import Stopper
from gradinspect.runner.whereabouts import whereabouts
from gradinspect.source import Expression, Program
from gradinspect.torch_api.backends import compiling_nothing
from gradinspect.torch_api.compilations import is_of_compiler, what_is_missing
from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.probes import missing_sentences, require_essentials
from gradinspect.torch_api.weak import hidden_refs_patch
from gradinspect.units import format_calls, readable

__all__ = ["Session", "whereabouts"]
USAGE = 2  # the exit code of argparse
_NO_GRAD = "does not require grad"  # as below
_NEEDS_SCALAR = "grad can be implicitly created only for scalar outputs"  # torch/autograd/__init__.py, torch 2.13


T = TypeVar("T")


class Session(Generic[T]):
    """One run of one program."""

    def __init__(  # what a run takes
        self,
        program: Program,
        request: Request,
        make_observer: MakeObserver[T],
        imports: Imports,
        finish: Callable[[T], None],
        call_reached: Callable[[], None],
    ) -> None:
        """Prepare to run.

        Args:
            program: What to run.
            request: What the user asked for.
            make_observer: Makes the observer of the backward calls.
            imports: The import states of both sides.
            finish: Delivers the result if the program ends the process before control returns to us.
            call_reached: Called for each engine call.
        """
        require_essentials()
        with suppress(Exception):  # what is wrong with it is said where it is needed
            load_catalog()  # before the program may replace what reads files
        if request.job is not None and not request.fake:
            raise GradInspectError(
                "'--world-size' is for ranks that are not there, which cannot send values.",
                "Remove --real or --try, or run all ranks: torchrun -m gradinspect.",
            )
        if request.fake or request.keeps_files:
            kept_files.begin()
        self.failure: str | None = None  # how the program failed after it was recorded
        self.failure_trace = ""  # the traceback of that
        self.exit_code = 0  # of a program that ran to its end
        self.is_delivered = False
        self._request = request
        self._finish = finish
        # of an expression only while the callable runs
        self._calls = ObservedCalls(call_reached, is_looking=not isinstance(program, Expression))
        recorder = Recorder()
        self._process_state = ProcessState(imports)
        self._run = Run(
            program=program,
            base_folder=base_folder(program),
            request=request,
            recorder=recorder,
            process_state=self._process_state,
            interceptor=EngineInterceptor(self._calls.take, sees_fake=request.fake, on_missed=self._calls.missed),
            stopper=Stopper(),
            fake=self._fake_run(recorder) if request.fake else None,
        )
        self._run.interceptor.recorder = recorder
        self._observer = make_observer(self._run)
        self._calls.begin(self._run, self._observer)
        self._ran_loss = False
        self._models: dict[str, str] = {}  # classes of modules that a script defines, and how to call them

    def _fake_run(self, recorder: Recorder) -> FakeRun:
        """Make the fake mode, which answers what reads values if the request asks for it."""
        request = self._request

        def running() -> tuple[int | None, int]:
            counts = self._run.interceptor.counts
            return recorder.running_module, counts.backwards + counts.grads

        def is_computing() -> bool:
            return recorder.running_module is not None or running_node() is not None

        replayed = None if request.reads is None else ReplayedReads(request.reads, running)
        reads = AnsweredReads(request.hint, is_computing, replayed) if request.answers_reads else None
        return FakeRun(request.device, reads)

    def run(self) -> T:
        """Run the program and return the result of the observer.

        Raises:
            GradInspectError: There was nothing to record.
            ScriptFailedError: The program failed before anything was recorded.
        """
        program = self._run.program
        with ExitStack() as stack:
            stack.callback(kept_files.put_back)  # when the program's files are closed, and its functions are gone
            stack.callback(self._restore)
            if self._request.quiet:
                self._process_state.hide_stdout()
            stack.enter_context(self._early_exits_deliver())
            stack.enter_context(self._run.interceptor)
            # even when the recorder has stopped
            stack.enter_context(patched(*stack_patches(), hidden_refs_patch(), freezes_noted()))
            stack.enter_context(self._run.recorder)
            stack.enter_context(waiting_handlers())
            stack.enter_context(self._run.stopper)
            self._enter_conditions(stack)
            stack.enter_context(self._observer.attached())
            stack.callback(self._restore)  # runs before the other exits, which need our builtins
            self._process_state.start_program(program)
            if isinstance(program, Expression):
                self._run_expression(program)
            else:
                self._after(run_program(program, self._request.arguments, self._run.stopper))
        release_wrappers()
        result = self._settled_result()
        problem = self._run.problem or self._run.interceptor.problem or self._observer.problem
        if problem is not None:
            raise problem
        if result is None:
            notes, counts = tuple(self._run.recorder.errors.notes()), self._run.interceptor.counts
            raise hidden_by_errors(self._request, counts, notes) or nothing_recorded(
                self._request,
                self._observer,
                counts,
                self._models,
                has_compiled=self._run.recorder.has_run_compiled,
            )
        if self._ran_loss and self._request.loss is None:
            print(f"note: {_ran_backward(self._request.label)}", file=sys.stderr)
        self._warn_of_missed_calls()
        self._warn_of_missing_names()
        return result

    def _enter_conditions(self, stack: ExitStack) -> None:
        """Let the program compile nothing, change no file, have no values, or be a rank of a job that is not there."""
        if self._request.fake or self._request.keeps_files:
            stack.enter_context(kept_files.kept())
            stack.enter_context(patched(*announced_writes()))
        if self._request.eager:
            stack.enter_context(compiling_nothing())
        if self._run.fake is not None:
            stack.enter_context(self._run.fake)
        if self._request.job is not None:
            stack.enter_context(fake_ranks(self._request.job))

    @property
    def was_stopped(self) -> bool:
        """Whether the program was stopped before its end."""
        return self._run.stopper.is_stopping

    def stop_from_outside(self, exit_code: int, patience_s: float) -> None:
        """End the program because of what other ranks did, from a thread of ours."""
        self._run.stopper.stop_from_outside(exit_code, patience_s)

    def stop_when(self, may_stop: Callable[[], bool]) -> None:
        """Have each stop wait for other ranks, and not happen if they need what the program does next."""
        self._run.may_stop = may_stop

    def _warn_of_missed_calls(self) -> None:
        """Say which calls were not looked at, if the report does not."""
        if not self._observer.reports_missed_calls:
            for sentence in missed_notes(self._run.interceptor.num_missed):
                print(f"note: {sentence}", file=sys.stderr)

    def _warn_of_missing_names(self) -> None:
        """Say which private names this torch lacks, if the report does not."""
        if not self._observer.reports_missing_names:
            for sentence in missing_sentences():
                print(f"warning: {sentence}", file=sys.stderr)

    def _after(self, end: ProgramEnd) -> None:
        """Handle the end of a script, and record its remaining tensors if nothing was recorded before."""
        request = self._request
        if getpid() != self._run.interceptor.pid:
            leave_as_python(end)
        self._run.has_failed = end.error is not None or bool(end.exit_code)
        if end.error is not None:
            self._failed(end.error)
            return
        with OwnBuiltins():
            self._models = models_in(end.namespace)
        self.exit_code = end.exit_code if request.goes_on else 0
        if self._has_result() or self._run.problem is not None:
            if end.exit_code and not request.goes_on:
                self.failure = f"The script ended with exit code {end.exit_code} {self._when()}."
                self.exit_code = SCRIPT_FAILED
        elif end.exit_code and (self._takes_end() or not self._has_called()):
            raise ScriptFailedError(
                f"The script ended with exit code {end.exit_code} before any backward call.{self._own_arguments(end)}",
                self.exit_code or SCRIPT_FAILED,
            )
        elif self._takes_end():
            self._take_namespace(end.namespace)

    def _has_called(self) -> bool:
        counts = self._run.interceptor.counts
        return bool(counts.backwards or counts.grads)

    def _own_arguments(self, end: ProgramEnd) -> str:
        """Say where arguments of the script go, if its parser may have missed them."""
        is_usage = end.exit_code == USAGE and "argparse" in sys.modules and not self._request.arguments
        return f" Its own arguments follow --: {self._request.label} -- ARGUMENTS." if is_usage else ""

    def _failed(self, error: BaseException) -> None:
        """Print how a script failed; what was recorded before is still reported.

        Raises:
            KeyboardInterrupt: It was interrupted, and nothing was recorded.
            ScriptFailedError: It failed, and nothing was recorded.
        """
        if (
            self._request.fake
            and self._observer.has_left
            and explain_fake_error(error, self._request.values_hint, self._request.sizes_hint)
        ):
            return  # it would have been stopped before that
        self._observer.ended_by(error)
        self.failure, left = self._failure_of(error)
        self.exit_code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else SCRIPT_FAILED
        if not self._has_answer() and self._run.problem is None:
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt
            raise ScriptFailedError(self.failure, left or self.exit_code, self.failure_trace)
        if left is not None:
            self.exit_code = left

    def _takes_end(self) -> bool:
        """Return whether to record the tensors left by a script, if nothing else was recorded."""
        request = self._request
        if request.backward is not None or request.grad is not None or request.at == "backward":
            return False
        if self._observer.needs_backward:
            return False
        has_grads = self._run.interceptor.counts.grads > 0  # the user is told to name one of them
        return request.at is not None or not has_grads or self._observer.takes_any_call

    def _failure_of(self, error: BaseException) -> tuple[str, int | None]:
        """Print how a script failed, and return one sentence about it, and the exit code of its excepthook, if any."""
        self._explain(error)
        if self._observer.reports_before_failure:
            self._deliver_early()  # the findings come before the error that they explain
        left = self._print(error)
        self.failure_trace = trace_of(error) if self._observer.keeps_trace else ""
        where = " on fake tensors" if self._request.fake else ""
        remedy = " Reduce that output to a scalar first, or pass backward a gradient of its shape."
        more = remedy if _NEEDS_SCALAR in text_of(error) else ""
        if _NO_GRAD in text_of(error) and not self._observer.reports_before_failure:
            more = f" The line that cut the graph is found by: gradinspect check {self._request.label}"
        if is_of_compiler(error):
            missing = readable(what_is_missing(error) or "It is from torch.compile.")
            more = f" {missing} --eager leaves torch.compile out."
        elif where and not more:
            more = " If python runs it, 'fit --real' measures it."
        name, when = type(error).__name__, self._when()
        sentence = f" with {name} {when}." if when.startswith("after") else f" {when}: {name}."
        return f"The script failed{where}{sentence}{more}", left if self._request.goes_on else None

    def _print(self, error: BaseException) -> int | None:
        """Print it by the program's excepthook, which may send it somewhere, unless a tried plan has caused it."""
        if is_output_hidden():
            return None
        with self._process_state.given_back():
            return print_error(without_our_frames(error, is_own_file) if self._request.fake else error)

    def _when(self) -> str:
        """Return how many calls had been made: `after 2 backward calls`, `before any backward call`."""
        counts = self._run.interceptor.counts
        number = counts.backwards + counts.grads
        if not number:
            return "before any backward call"
        calls = format_calls(counts.backwards, counts.grads)
        observed = f"the {calls} that {'was' if number == 1 else 'were'} observed"
        return f"after {observed if self._observer.has_left else calls}"

    def _explain(self, error: BaseException) -> None:
        """Raise one sentence in place of an error caused by fake tensors."""
        is_fake = self._request.fake and not self._has_answer()
        explained = explain_fake_error(error, self._request.values_hint, self._request.sizes_hint) if is_fake else None
        is_bound = is_fake and self._run.fake is not None and self._run.fake.is_bound
        if explained is None and is_bound and isinstance(error, Exception):
            explained = explain_largest_size(error, self._request.sizes_hint)
        if explained is not None:
            raise explained from None

    def _take_namespace(self, namespace: dict[str, Any]) -> None:
        """Record the tensors left by a program."""
        variables = tuple(variables_of(namespace))

        def outputs() -> list[OutputTensor]:
            if self._request.root is not None:
                return named_root(self._request.root, list(variables))
            return final_outputs(variables)

        self._record_end("end", outputs, variables)

    def _record_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Let the observer record what is left after the program."""
        try:
            self._observer.at_end(kind, outputs, variables)
        except Exception as error:
            self._run.problem = error

    def _run_expression(self, source: Expression) -> None:
        """Evaluate an expression, call its value if callable, and record the result."""
        what = source.text
        try:
            module = module_of(source, self._request.arguments)
            names = {"torch": torch, **names_on_demand(module, source.text), **vars(module)}
            value = named = eval(source.text, names)  # noqa: S307  # the user's own code
            _check_made(value, source)
            takes_call = callable(value) and not isinstance(value, torch.Tensor)
            self._check_movable(source, takes_call=takes_call)
            if takes_call:
                positional, keywords = make_inputs(self._request.inputs, self._place(named))
                self._run.interceptor.counts = CallCounts()
                self._calls.is_looking = True
                value = named(*positional, **keywords)
                what = what if self._request.loss is None else f"--loss {self._request.loss}"
                self._run_loss(value)
        except GradInspectError:
            raise
        except BaseException as error:
            if self._run.stopper.is_stopping:
                return
            self._run.has_failed = True
            self._explain(error)
            print_error(without_our_frames(error, is_own_file))
            hint = "" if self._request.inputs or not _lacks_argument(error) else " Give its inputs: --input 2x3x32x32."
            raise ScriptFailedError(f"'{what}' failed with {type(error).__name__}.{hint}") from None
        finally:
            self._run.stopper.ended()
        self._observer.settle()
        has_backward = self._observer.result_of_backward() is not None
        if not has_backward and self._run.problem is None:  # the output says more than a grad() inside
            variables = tuple(variables_of(vars(module)))
            self._record_end("call" if takes_call else "end", lambda: outputs_in(value, "output"), variables)

    def _check_movable(self, source: Expression, *, takes_call: bool) -> None:
        """Check that what the user wants on a device is still to be computed.

        Raises:
            GradInspectError: It is a tensor.
        """
        request = self._request
        if request.device is not None and not request.fake and not takes_call:
            raise GradInspectError(
                f"'--device {request.device}' moves a callable, and '{source.text}' has been computed.",
                "Name what computes it, such as a model, and its inputs: --input 2x3.",
            )

    def _place(self, called: object) -> torch.device | None:
        """Move a callable to where the user wants it, and return where its inputs go; None: anywhere."""
        device = self._request.device
        return device_of(called) if device is None or self._request.fake else move(called, device)

    def _run_loss(self, value: object) -> None:
        """Run a backward where the callable calls none, and the observer or the user wants one."""
        request, counts = self._request, self._run.interceptor.counts
        if request.loss is None and (
            counts.backwards or not self._observer.wants_backward or not request.names_no_call
        ):
            return
        if request.loss is None and not outputs_in(value):
            return
        self._ran_loss = self._run.is_made_up = True
        run_backward(value, request.loss)

    @contextmanager
    def _early_exits_deliver(self) -> Iterator[None]:
        """Deliver the result even if the program leaves by os._exit, or is ended as it does not end by itself."""
        original = os._exit

        def deliver() -> None:
            if getpid() == self._run.interceptor.pid:
                self._deliver_early()
                kept_files.put_back()

        def _exit(status: int) -> None:
            deliver()
            original(status)

        os._exit = _exit  # type: ignore[assignment]
        self._run.stopper.deliver = deliver
        try:
            yield
        finally:
            os._exit = original
            self._run.stopper.deliver = None

    def _settled_result(self) -> T | None:
        """Return the result, now that the program has ended or is about to."""
        with OwnBuiltins():
            self._observer.settle()
            return self._observer.result()

    def _has_result(self) -> bool:
        with OwnBuiltins():
            self._observer.settle()
            return self._observer.has_result()

    def _has_answer(self) -> bool:
        """Return whether the result so far is worth reporting after a failure."""
        return self._has_result() and not self._observer.is_partial

    def _deliver_early(self) -> None:
        result = self._settled_result()
        if result is not None and not self.is_delivered:
            self.is_delivered = True
            self._restore()
            self._finish(result)
        with suppress(Exception):
            sys.stdout.flush()

    def _restore(self) -> None:
        if getpid() == self._run.interceptor.pid:
            self._process_state.restore(was_stopped=self._run.stopper.is_stopping)


def _check_made(value: object, source: Expression) -> None:
    """Check that a class of modules was called.

    Raises:
        GradInspectError: It is the class itself, whose arguments are not inputs.
    """
    if isinstance(value, type) and issubclass(value, torch.nn.Module):
        raise GradInspectError(
            f"'{source.text}' is a class of modules, not a module.",
            f"Did you mean '{source.module}:{call_of(source.text, value)}'?",
        )


def _lacks_argument(error: BaseException) -> bool:
    return isinstance(error, TypeError) and "missing" in text_of(error) and "argument" in text_of(error)


def _ran_backward(label: str) -> str:
    return f"'{label}' calls no backward, so backward of the sum of its output was run; --loss chooses another loss."
