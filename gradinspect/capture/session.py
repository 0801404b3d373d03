"""From a SOURCE to a graph: run the user's program, record at the moment that was asked for."""

import atexit
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, TypeAlias

import torch
from msgspec.structs import replace

from gradinspect.analyses.findings import Findings
from gradinspect.analyses.gradient_steps import GradientSteps
from gradinspect.analyses.growth import Growth
from gradinspect.analyses.stepping import Ending as StepEnding
from gradinspect.analyses.timeline import Timeline
from gradinspect.capture.checking import Checker
from gradinspect.capture.consumed import ConsumedGraphs
from gradinspect.capture.engine import EngineCall, EngineDoor, Watch
from gradinspect.capture.fake import FAKE_TYPES, FakeRun, explain_fake_error
from gradinspect.capture.growth import GrowthWatch
from gradinspect.capture.inputs import make_inputs
from gradinspect.capture.lockstep import Lockstep, Watcher
from gradinspect.capture.namespaces import base_folder, namespace_of, variables_of
from gradinspect.capture.outputs import OutputTensor, final_outputs, has_graph, outputs_in
from gradinspect.capture.own_backward import starting_gradients, step_from_outputs
from gradinspect.capture.program import (
    Ending,
    leave_as_python,
    print_error,
    run_program,
    without_our_frames,
)
from gradinspect.capture.record import Moment, record_graph
from gradinspect.capture.recorder import Recorder
from gradinspect.capture.release import release_wrappers
from gradinspect.capture.request import Request, nothing_recorded
from gradinspect.capture.second_order import gradients_with_graph
from gradinspect.capture.source import Expression
from gradinspect.capture.stopping import Stopper
from gradinspect.capture.surroundings import Surroundings
from gradinspect.capture.tensors import PLAIN_TYPES
from gradinspect.capture.timing import TimeWatch
from gradinspect.capture.variables import Variable, variables_from
from gradinspect.capture.watching import BackwardWatch
from gradinspect.errors import GradInspectError
from gradinspect.graph import CaptureKind, Graph
from gradinspect.units import format_count

SCRIPT_FAILED = 3
_NEEDS_SCALAR = "grad can be implicitly created only for scalar outputs"  # torch/autograd/__init__.py, torch 2.13


Result: TypeAlias = Graph | Growth | GradientSteps | Timeline | StepEnding | Findings


class ScriptFailedError(Exception):
    """The user's program failed by itself before anything was recorded. Its traceback has been printed."""

    def __init__(self, sentence: str) -> None:
        """Keep what to say after the traceback."""
        super().__init__(sentence)


class Session:
    """One run of one program."""

    def __init__(self, request: Request, finish: Callable[[Any], None]) -> None:
        """Prepare to run.

        Args:
            request: What the user asked for.
            finish: Delivers the result, should the program end the process before it returns to us.
        """
        self.graph: Graph | None = None
        self.failure: str | None = None  # how the program failed after it was recorded
        self._request = request
        self._finish = finish
        self._problem: Exception | None = None
        self.is_delivered = False
        self._is_looking = not isinstance(request.source, Expression)  # there, only while the callable runs
        self._recorder = Recorder()
        self._growth = GrowthWatch(request.label, request.iterations, self._recorder) if request.iterations else None
        self._watch = BackwardWatch(request.steps, self._stop) if request.gradients else None
        self._checker = None if request.checks is None else Checker(request, self._recorder, self._stop)
        self._door = EngineDoor(self._on_engine_call, sees_fake=request.fake)
        self._stopper = Stopper(self._finish_now)
        self._surroundings = Surroundings()
        self._fake: FakeRun | None = None
        self._timeline: Timeline | None = None
        self._steps: StepEnding | None = None
        self._consumed = ConsumedGraphs()
        self._pid = os.getpid()

    @property
    def result(self) -> Result | None:
        """What was recorded so far."""
        if self._request.watcher is not None:
            return self._steps
        if self._request.times:
            return self._timeline
        if self._checker is not None:
            return self._checker.result()
        if self._growth is not None:
            return self._growth.growth()
        return self.graph if self._watch is None else self._watch.result()

    def run(self) -> Result:
        """Run the program and return what was recorded: a graph, with its gradients or not, or several moments.

        Raises:
            GradInspectError: There was nothing to record.
            ScriptFailedError: The program failed first.
        """
        source = self._request.source
        with ExitStack() as stack:
            stack.callback(self._come_home)
            if self._request.quiet:
                self._surroundings.hide_stdout()
            stack.enter_context(self._early_exits_deliver())
            stack.enter_context(self._door)
            stack.enter_context(self._recorder)
            stack.enter_context(self._stopper)
            if self._checker is not None:
                stack.enter_context(self._checker.log)
            if self._request.fake:
                self._fake = stack.enter_context(FakeRun(self._request.device))
            if isinstance(source, Expression):
                self._run_expression(source)
            else:
                self._after(run_program(source, self._request.arguments, self._stopper))
        release_wrappers()
        result = self.result
        problem = self._problem or self._door.problem or (None if self._watch is None else self._watch.problem)
        if problem is not None:
            raise problem
        if result is None:
            raise nothing_recorded(self._request, self._door.num_calls)
        return result

    def _on_engine_call(self, call: EngineCall) -> Watch | None:
        """Record at the call that was asked for, then stop the program unless it shall go on."""
        if not self._is_looking:
            return None
        if self._growth is not None or self._checker is not None or self._watch is not None:
            return self._watch_several(call)
        watch = None
        if self.graph is None and self._problem is None and has_graph(call.outputs):  # else the engine will refuse it
            if self._request.at in (None, "backward") and call.number == (self._request.backward or 1):
                self._take(call.kind, self._outputs_of(call), call)
                self._recorder.pause()
                watch = None if self.graph is None else self._watch_run(self.graph, call)
            elif self._request.watcher is not None:
                self._consumed.note(call)
        if watch is None and (self.graph is not None or self._problem is not None):
            self._stop(call.caller)
        return watch

    def _watch_several(self, call: EngineCall) -> Watch | None:
        """Tell whoever looks at calls in a row, rather than at one."""
        if self._checker is not None:
            return self._check(self._checker, call)
        if self._watch is not None:
            return self._watch_gradients(self._watch, call)
        if self._growth is not None:
            self._watch_growth(self._growth, call)
        return None

    def _watch_run(self, graph: Graph, call: EngineCall) -> Watch | None:
        """Watch the engine go through the graph that was just recorded, if that was asked for."""
        if self._request.times:
            return self._watch_times(graph, call)
        if self._request.watcher is not None and not self._request.creates_graph:
            return self._step_through(graph, self._request.watcher, call)
        return None

    def _watch_gradients(self, watch: BackwardWatch, call: EngineCall) -> Watch | None:
        """Record, then watch the engine run; the watch stops the program when it has seen enough."""
        watch.settle()
        if watch.is_done or self._problem is not None:
            self._stop(call.caller)
            return None
        comes_too_early = call.number < (self._request.backward or 1)
        if comes_too_early or self._request.at not in (None, "backward") or not has_graph(call.outputs):
            return None
        self._take(call.kind, self._outputs_of(call), call)
        graph, self.graph = self.graph, None
        if graph is None:
            self._stop(call.caller)
            return None
        if watch.num_left == 1:
            self._recorder.pause()
        return watch.begin(graph, self._outputs_of(call)(), call.caller)

    def _check(self, checker: Checker, call: EngineCall) -> Watch | None:
        """Record, look for what is wrong before the engine meets it, then watch the engine run."""
        if call.number < (self._request.backward or 1) or checker.is_done:
            return None
        if not has_graph(call.outputs):
            return None
        self._take(call.kind, self._outputs_of(call), call)
        graph, self.graph = self.graph, None
        if graph is None or self._problem is not None:
            self._stop(call.caller)
            return None
        with self._surroundings.visit():
            return checker.begin(graph, call)

    def _watch_times(self, graph: Graph, call: EngineCall) -> Watch:
        """Time the engine, and stop the program after it."""
        watch = TimeWatch(graph, self._outputs_of(call)())

        def after(_returned: object) -> None:
            self._timeline = watch.finish()
            self._stop(call.caller)

        return Watch(after, watch.close)

    def _step_through(self, graph: Graph, watcher: Watcher, call: EngineCall) -> Watch:
        """Step through the engine's run, and stop the program after it, or when the watcher has seen enough."""

        def leave(steps: Lockstep) -> None:
            self._steps = steps.ending()
            steps.close()
            self._stopper.stop(call.caller)

        if not watcher.begin(graph, "", self._surroundings.talk):
            self._steps = StepEnding(graph=graph, num_steps=0, is_complete=False)
            self._stopper.stop(call.caller)
        asked = [OutputTensor(None, value) for value in call.inputs] if call.kind == "grad" else []
        steps = Lockstep(graph, self._outputs_of(call)(), call.gradients, watcher, leave, inputs=asked)

        def after(returned: Sequence[torch.Tensor | None]) -> None:
            self._problem = self._problem or steps.problem
            self._steps = steps.finish(returned)
            self._stop(call.caller)

        return Watch(after, steps.close)

    def _stop(self, frame: FrameType) -> None:
        if not self._request.goes_on:
            self._stopper.stop(frame)

    def _watch_growth(self, growth: GrowthWatch, call: EngineCall) -> None:
        if not growth.is_done and self._problem is None:
            try:
                with self._surroundings.visit():
                    growth.observe(call)
            except Exception as error:
                self._problem = error
        if (growth.is_done or self._problem is not None) and not self._request.goes_on:
            self._stopper.stop(call.caller)

    def _outputs_of(self, call: EngineCall) -> Callable[[], list[OutputTensor]]:
        def outputs() -> list[OutputTensor]:
            variables = list(variables_from(call.frame))
            if self._request.root is not None:
                return self._named_root(self._request.root, variables)
            names = {id(value): name for name, value in reversed(variables)}
            return [OutputTensor(names.get(id(output)), output) for output in call.outputs]

        return outputs

    def _take(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], call: EngineCall | None = None,
        variables: tuple[Variable, ...] = (),
    ) -> None:  # fmt: skip
        """Record; whatever goes wrong is kept for later, it must not reach the user's program."""
        try:
            with self._surroundings.visit():
                moment = Moment(
                    source=self._request.label,
                    kind=kind,
                    number=None if call is None else call.number,
                    frame=None if call is None else call.frame,
                    base_folder=base_folder(self._request.source),
                    variables=variables,
                    plain_types=FAKE_TYPES if self._request.fake else PLAIN_TYPES,
                    warnings=() if self._fake is None else self._fake.warnings,
                )
                found = outputs()
                if found:
                    self.graph = self._with_warning(record_graph(found, moment, self._recorder))
                if self.graph is not None and self._request.creates_graph:
                    found = self._take_second(self.graph, found, moment, None if call is None else call.gradients)
            is_our_call = call is None or self._request.creates_graph
            if self.graph is not None and is_our_call and self._request.watcher is not None:
                with self._door.closed():
                    self._steps = step_from_outputs(
                        self.graph, found, self._request.watcher, self._request.grad_output, self._surroundings.talk
                    )
        except Exception as error:
            self._problem = error

    def _take_second(
        self, graph: Graph, outputs: list[OutputTensor], moment: Moment, gradients: Sequence[torch.Tensor | None] | None
    ) -> list[OutputTensor]:
        """Record the graph that backward builds instead of the one that it goes through."""
        self.graph = None
        self._recorder.pause()
        with self._door.closed():
            outputs, makers = gradients_with_graph(graph, outputs, starting_gradients(outputs, gradients))
        self.graph = record_graph(outputs, dataclasses.replace(moment, makers=makers), self._recorder)
        return outputs

    def _with_warning(self, graph: Graph) -> Graph:
        """Say who has used a graph up, to those who want to run it."""
        warning = self._consumed.warning(graph) if self._request.watcher is not None else None
        return graph if warning is None else replace(graph, warnings=(*graph.warnings, warning))

    def _after(self, ending: Ending) -> None:
        """Look at how a script ended, and record its last tensors if nothing was recorded before."""
        request = self._request
        if os.getpid() != self._pid:
            leave_as_python(ending)
        if ending.error is not None:
            self.failure = self._failure_of(ending.error)
            if self.result is None and self._problem is None:
                if isinstance(ending.error, KeyboardInterrupt):
                    raise KeyboardInterrupt
                raise ScriptFailedError(self.failure)
            return
        if self.result is not None or self._problem is not None or request.backward is not None:
            return
        if request.at == "backward" or self._growth is not None or request.lets_run:
            return
        if ending.exit_code and self.graph is None:
            raise ScriptFailedError(f"The script ended with exit code {ending.exit_code} before any backward call.")
        self._take_namespace(ending.namespace)

    def _failure_of(self, error: BaseException) -> str:
        """Print how a script failed, and say it in one sentence."""
        self._explain(error)
        if self._checker is not None:
            self._deliver_early()  # what was found stands before the error that it explains
        print_error(error)
        calls = format_count(self._door.num_calls, "backward call") if self._door.num_calls else "no backward call"
        where = " on fake tensors" if self._request.fake else ""
        remedy = " Sum that output up first, or give backward a gradient of its shape."
        more = remedy if _NEEDS_SCALAR in str(error) else ""
        return f"The script failed{where} with {type(error).__name__} after {calls}.{more}"

    def _explain(self, error: BaseException) -> None:
        """Say in one sentence what a program without values met, if that is what has happened."""
        explained = explain_fake_error(error) if self._request.fake and self.result is None else None
        if explained is not None:
            raise explained from None

    def _take_namespace(self, namespace: dict[str, Any]) -> None:
        """Record the tensors that a program has left behind."""
        variables = tuple(variables_of(namespace))

        def outputs() -> list[OutputTensor]:
            if self._request.root is not None:
                return self._named_root(self._request.root, list(variables))
            return final_outputs(variables)

        self._take("end", outputs, variables=variables)

    def _run_expression(self, source: Expression) -> None:
        """Evaluate an expression, call it if it can be called, and record what comes out."""
        try:
            namespace = namespace_of(source, self._request.arguments)
            value = named = eval(source.text, {"torch": torch, **namespace})  # noqa: S307  # the user's own words
            takes_call = callable(value) and not isinstance(value, torch.Tensor)
            if takes_call:
                positional, keywords = make_inputs(self._request.inputs)
                self._door.num_calls = 0
                self._is_looking = True
                value = named(*positional, **keywords)
        except GradInspectError:
            raise
        except BaseException as error:
            if self._stopper.is_stopping:
                return
            self._explain(error)
            print_error(without_our_frames(error))
            raise ScriptFailedError(f"'{source.text}' failed with {type(error).__name__}.") from None
        finally:
            self._stopper.ended()
        if self.graph is None and self._problem is None and not self._request.lets_run:
            variables = tuple(variables_of(namespace))
            self._take("call" if takes_call else "end", lambda: outputs_in(value, "output"), variables=variables)

    def _named_root(self, root: str, variables: list[Variable]) -> list[OutputTensor]:
        found = [value for name, value in variables if name == root]
        outputs = outputs_in(found[0], root) if found else []
        if outputs:
            return outputs
        names = [name for name, value in variables if isinstance(value, torch.Tensor) and value.requires_grad]
        known = (
            f"Tensors with a graph here: {', '.join(dict.fromkeys(names[:20]))}." if names else "There is none here."
        )
        what = "has no graph" if found else "is not a variable that can be seen"
        raise GradInspectError(f"The root '{root}' {what}.", known)

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
        result = self.result
        if result is not None and not self.is_delivered:
            self.is_delivered = True
            self._come_home()
            self._finish(result)
        with suppress(Exception):
            sys.stdout.flush()

    def _come_home(self) -> None:
        if os.getpid() == self._pid:
            self._surroundings.come_home()
