"""Run whole training steps under a plan on real tensors: how long they take, and what gradients they compute."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any
from weakref import ref

from torch.optim import Optimizer

from gradinspect.analyses.planning.changes import Plan
from gradinspect.analyses.planning.trial import Digest, RealSteps
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.observers.planning.gradient_digests import digests_of, digests_of_values
from gradinspect.observers.planning.plan_changes import AppliedPlan
from gradinspect.recording.outputs import has_graph
from gradinspect.recording.walk import Walk
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.devices.accelerators import wait_for_device
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import optimizer_steps


class RealStepsObserver(Observer[RealSteps]):
    """Times the first steps of a program, from the end of one to the end of the next."""

    takes_any_call = True

    def __init__(self, run: Run, num_steps: int, plan: Plan) -> None:
        """Start before the program does."""
        self._run = run
        self._asked = num_steps
        self._applied = AppliedPlan(plan, run)
        self._phases = StepPhases()
        self._gradients: list[tuple[Digest, ...]] = []
        self._leaves: list[Any] = []  # of the last backward call, weakly
        self._parameters: tuple[Digest, ...] = ()
        self._seconds: list[float] = []
        self._last_end = perf_counter()
        self._is_complete = False

    @property
    def is_partial(self) -> bool:  # type: ignore[override]  # it changes
        """Whether no step has ended."""
        return not self._seconds

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Change the program's modules, and listen to the steps of optimizers."""
        with ExitStack() as stack:
            stack.enter_context(self._applied)
            stack.enter_context(optimizer_steps(before=self._before_step, after=self._after_step, note=self.failed))
            yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Wait for its gradients; the program is stopped at the first call after as many steps as were asked for."""
        self.problem = self.problem or self._applied.problem
        if not has_graph(call.outputs):
            return None
        self._phases.call_begins()
        if self._phases.step > self._asked:
            self._run.stop(call.caller)
            return None
        self._applied.backward_begins()
        walk = Walk(output.edge[0] for output in self._run.outputs_of(call))
        leaves = list(walk.leaves().values())
        self._leaves = [ref(leaf) for leaf in leaves]
        walk.close()
        return CallEnd(lambda _returned: self._call_ended(call, leaves), lambda: self._call_ended(call, leaves))

    def result(self) -> RealSteps | None:
        """Return what was seen; None before the first backward call has ended."""
        if not self._gradients:
            return None
        return RealSteps(seconds=tuple(self._seconds), gradients=tuple(self._gradients), parameters=self._parameters)

    def _call_ended(self, call: EngineCall, leaves: list[Any]) -> None:
        began = perf_counter()
        self._gradients.append(digests_of(leaves))
        leaves.clear()
        self._last_end += perf_counter() - began  # our own time
        self._phases.call_ends(call)
        self._step_may_end()

    @uncompiled
    def _before_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._phases.optimizer_begins()

    @uncompiled
    def _after_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._phases.optimizer_ends()
        self._step_may_end()

    def _step_may_end(self) -> None:
        """Note the time; several optimizers may step, so the last end of a step counts."""
        if not self._phases.is_between or self._phases.step > self._asked:
            return
        wait_for_device()
        now = perf_counter()
        if len(self._seconds) == self._phases.step:
            self._seconds[-1] += now - self._last_end
        else:
            self._seconds.append(now - self._last_end)
        leaves = (reference() for reference in self._leaves)
        self._parameters = digests_of_values(leaf for leaf in leaves if leaf is not None)
        self._last_end = perf_counter()
