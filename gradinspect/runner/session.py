"""From a SOURCE to a result: run the user's program, and let a mode look at its backward calls."""

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

import torch

from gradinspect.analyses.gradients.timeline import Timeline
from gradinspect.analyses.memory.growth import Growth
from gradinspect.checks.evidence.observer import Checker
from gradinspect.errors import INTERRUPTED, SCRIPT_FAILED, GradInspectError, text_of
from gradinspect.fake.mode import FakeRun, explain_fake_error
from gradinspect.graph import CaptureKind
from gradinspect.isolation import Imports
from gradinspect.observers.backward_first import BackwardFirst
from gradinspect.observers.gradient_steps_observer import GradientStepsObserver
from gradinspect.observers.graph_observer import GraphObserver
from gradinspect.observers.growth_observer import GrowthObserver
from gradinspect.record.outputs import OutputTensor, final_outputs, outputs_in
from gradinspect.record.recorder import Recorder
from gradinspect.record.release import release_wrappers
from gradinspect.record.transparent_frames import stack_without_us
from gradinspect.record.variables import Variable
from gradinspect.runner.engine import CallCounts, EngineCall, EngineInterceptor, Watch
from gradinspect.runner.inputs import make_inputs
from gradinspect.runner.namespaces import namespace_of, variables_of
from gradinspect.runner.process_state import ProcessState
from gradinspect.runner.program import (
    Ending,
    leave_as_python,
    print_error,
    run_program,
    without_our_frames,
)
from gradinspect.runner.request import Request, nothing_recorded
from gradinspect.runner.run import Mode, Result, Run, named_root
from gradinspect.runner.stopping import Stopper
from gradinspect.source import Expression
from gradinspect.torch_api.anomaly import anomaly_stack_patches
from gradinspect.torch_api.patches import patched
from gradinspect.torch_api.probes import missing_sentences, require_essentials
from gradinspect.units import format_calls

_NEEDS_SCALAR = "grad can be implicitly created only for scalar outputs"  # torch/autograd/__init__.py, torch 2.13


class ProgramFailedError(Exception):
    """The user's program failed by itself before anything was recorded. Its traceback has been printed."""

    def __init__(self, sentence: str) -> None:
        """Keep what to say after the traceback."""
        super().__init__(sentence)


class Session:
    """One run of one program."""

    def __init__(self, request: Request, imports: Imports, finish: Callable[[Any], None]) -> None:
        """Prepare to run.

        Args:
            request: What the user asked for.
            imports: Ours, and those that the program shall find.
            finish: Delivers the result, should the program end the process before it returns to us.
        """
        require_essentials()
        self.failure: str | None = None  # how the program failed after it was recorded
        self.exit_code = 0  # of a program that was let run to its end
        self.is_delivered = False
        self._request = request
        self._finish = finish
        self._is_looking = not isinstance(request.source, Expression)  # there, only while the callable runs
        self._run = Run(
            request=request,
            recorder=Recorder(),
            process_state=ProcessState(imports),
            door=EngineInterceptor(self._on_engine_call, sees_fake=request.fake),
            stopper=Stopper(self._finish_now),
        )
        self._mode = self._choose_mode(request)
        self._pid = os.getpid()

    def _choose_mode(self, request: Request) -> Mode:
        """Choose what to look for, and at which calls."""
        if request.checks is not None:
            return Checker(request, self._run.recorder, self._run.stop)
        if request.takes_any_call:
            return BackwardFirst(self._observer(request, self._run.stop), self._observer(request, lambda _frame: None))
        return self._observer(request, self._run.stop)

    def _observer(self, request: Request, stop: Callable[[FrameType], None]) -> Mode:
        """Make what looks at the calls of one kind."""
        if request.gradients:
            return GradientStepsObserver(request.steps, stop)
        if request.iterations is not None:
            return GrowthObserver(request.label, request.iterations, self._run.recorder)
        return GraphObserver(request)

    def run(self) -> Result:
        """Run the program and return what was recorded: a graph, with its gradients or not, or several moments.

        Raises:
            GradInspectError: There was nothing to record.
            ProgramFailedError: The program failed first.
        """
        source = self._request.source
        with ExitStack() as stack:
            stack.callback(self._restore)
            if self._request.quiet:
                self._run.process_state.hide_stdout()
            stack.enter_context(self._early_exits_deliver())
            stack.enter_context(self._run.door)
            stack.enter_context(patched(*anomaly_stack_patches(stack_without_us)))  # also once the recorder has left
            stack.enter_context(self._run.recorder)
            stack.enter_context(self._run.stopper)
            if isinstance(self._mode, Checker):
                stack.enter_context(self._mode.watching(self._run.door))
            if self._request.fake:
                self._run.fake = stack.enter_context(FakeRun(self._request.device))
            self._run.process_state.start_program(source)
            if isinstance(source, Expression):
                self._run_expression(source)
            else:
                self._after(run_program(source, self._request.arguments, self._run.stopper))
        release_wrappers()
        result = self._mode.result()
        problem = self._run.problem or self._run.door.problem or self._mode.problem
        if problem is not None:
            raise problem
        if result is None:
            raise nothing_recorded(self._request, self._run.door.counts)
        self._warn_of_missing_names(result)
        return result

    def _warn_of_missing_names(self, result: Result) -> None:
        """Say what this torch does not give, where the report has no place for it."""
        if self._request.gradients or isinstance(result, Growth | Timeline):
            for sentence in missing_sentences():
                print(f"warning: {sentence}", file=sys.stderr)

    def _on_engine_call(self, call: EngineCall) -> Watch | None:
        """Let the mode look; whatever goes wrong is kept for later, it must not reach the user's program."""
        if not self._is_looking:
            return None
        if self._run.problem is None:
            try:
                return self._mode.on_call(self._run, call)
            except Exception as error:
                self._run.problem = error
        self._run.stop(call.caller)
        return None

    def _after(self, ending: Ending) -> None:
        """Look at how a script ended, and record its last tensors if nothing was recorded before."""
        request = self._request
        if os.getpid() != self._pid:
            leave_as_python(ending)
        if ending.error is not None:
            self._failed(ending.error)
            return
        self.exit_code = ending.exit_code if request.goes_on else 0
        if self._mode.result() is not None or self._run.problem is not None:
            if ending.exit_code and not request.goes_on:
                self.failure = f"The script ended with exit code {ending.exit_code} after {self._calls()}."
                self.exit_code = SCRIPT_FAILED
        elif self._takes_end():
            if ending.exit_code:
                raise ProgramFailedError(
                    f"The script ended with exit code {ending.exit_code} before any backward call."
                )
            self._take_namespace(ending.namespace)

    def _failed(self, error: BaseException) -> None:
        """Print how a script failed; what was recorded before that is reported.

        Raises:
            KeyboardInterrupt: It was interrupted, and nothing was recorded.
            ProgramFailedError: It failed, and nothing was recorded.
        """
        self.failure = self._failure_of(error)
        self.exit_code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else SCRIPT_FAILED
        if self._mode.result() is None and self._run.problem is None:
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt
            raise ProgramFailedError(self.failure)

    def _takes_end(self) -> bool:
        """Tell whether the tensors that a script leaves are to be recorded, where nothing else was."""
        request = self._request
        if request.backward is not None or request.grad is not None or request.at == "backward" or request.lets_run:
            return False
        has_only_grads = bool(self._run.door.counts.grads)  # which are not offered only where they had to be chosen
        return request.at is not None or not has_only_grads or request.takes_any_call

    def _failure_of(self, error: BaseException) -> str:
        """Print how a script failed, and say it in one sentence."""
        self._explain(error)
        if isinstance(self._mode, Checker):
            self._deliver_early()  # what was found stands before the error that it explains
        print_error(error)
        where = " on fake tensors" if self._request.fake else ""
        remedy = " Sum that output up first, or give backward a gradient of its shape."
        more = remedy if _NEEDS_SCALAR in text_of(error) else ""
        return f"The script failed{where} with {type(error).__name__} after {self._calls()}.{more}"

    def _calls(self) -> str:
        counts = self._run.door.counts
        calls = format_calls(counts.backwards, counts.grads)
        if not isinstance(self._mode, Checker) or not self._mode.was_left:
            return calls
        return f"the {calls} that {'was' if counts.backwards + counts.grads == 1 else 'were'} watched"

    def _explain(self, error: BaseException) -> None:
        """Say in one sentence what a program without values met, if that is what has happened."""
        explained = explain_fake_error(error) if self._request.fake and self._mode.result() is None else None
        if explained is not None:
            raise explained from None

    def _take_namespace(self, namespace: dict[str, Any]) -> None:
        """Record the tensors that a program has left behind."""
        variables = tuple(variables_of(namespace))

        def outputs() -> list[OutputTensor]:
            if self._request.root is not None:
                return named_root(self._request.root, list(variables))
            return final_outputs(variables)

        self._record_end("end", outputs, variables)

    def _record_end(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], variables: tuple[Variable, ...]
    ) -> None:
        """Record what is there after the program, if that is what was asked for."""
        if isinstance(self._mode, GraphObserver | BackwardFirst) and not self._request.lets_run:
            try:
                self._mode.at_end(self._run, kind, outputs, variables)
            except Exception as error:
                self._run.problem = error

    def _run_expression(self, source: Expression) -> None:
        """Evaluate an expression, call it if it can be called, and record what comes out."""
        try:
            namespace = namespace_of(source, self._request.arguments)
            value = named = eval(source.text, {"torch": torch, **namespace})  # noqa: S307  # the user's own words
            takes_call = callable(value) and not isinstance(value, torch.Tensor)
            if takes_call:
                positional, keywords = make_inputs(self._request.inputs)
                self._run.door.counts = CallCounts()
                self._is_looking = True
                value = named(*positional, **keywords)
        except GradInspectError:
            raise
        except BaseException as error:
            if self._run.stopper.is_stopping:
                return
            self._explain(error)
            print_error(without_our_frames(error))
            raise ProgramFailedError(f"'{source.text}' failed with {type(error).__name__}.") from None
        finally:
            self._run.stopper.ended()
        called = self._mode.backward if isinstance(self._mode, BackwardFirst) else self._mode
        if called.result() is None and self._run.problem is None:  # its output says more than a grad() inside it
            variables = tuple(variables_of(namespace))
            self._record_end("call" if takes_call else "end", lambda: outputs_in(value, "output"), variables)

    @contextmanager
    def _early_exits_deliver(self) -> Iterator[None]:
        """Deliver what was recorded also when a program that goes on leaves by os._exit."""
        original = os._exit

        def _exit(status: int) -> None:
            if os.getpid() == self._pid:
                self._deliver_early()
            original(status)

        os._exit = _exit  # type: ignore[assignment]
        try:
            yield
        finally:
            os._exit = original

    def _finish_now(self) -> None:
        """End a program that does not end: deliver, run its atexit handlers, leave."""
        atexit._run_exitfuncs()
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(0)

    def _deliver_early(self) -> None:
        result = self._mode.result()
        if result is not None and not self.is_delivered:
            self.is_delivered = True
            self._restore()
            self._finish(result)
        with suppress(Exception):
            sys.stdout.flush()

    def _restore(self) -> None:
        if os.getpid() == self._pid:
            self._run.process_state.restore()
