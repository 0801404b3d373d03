"""Run whole training steps under a plan: their memory, their work, and what could be changed."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import getpid

import msgspec
import torch

from gradinspect.analyses.planning.changes import NO_CHANGE, Offload, Plan
from gradinspect.analyses.planning.planned_steps import PlannedSteps
from gradinspect.observers.memory.step_memory_observer import StepMemoryObserver
from gradinspect.observers.operator_calls import OperatorCalls, OperatorListener
from gradinspect.observers.planning.flop_tally import FlopTally
from gradinspect.observers.planning.held_variables import HeldVariables
from gradinspect.observers.planning.module_uses import ModuleUses
from gradinspect.observers.planning.moved_bytes import MovedBytes
from gradinspect.observers.planning.optimizer_uses import OptimizerUses
from gradinspect.observers.planning.plan_changes import AppliedPlan
from gradinspect.observers.planning.projected_loss import ProjectedLoss
from gradinspect.observers.planning.second_runs import SecondRuns
from gradinspect.observers.planning.zeroed_gradients import ZeroedGradients
from gradinspect.recording.frames import line_at, line_record, own_frame
from gradinspect.recording.names.instances import note_before_freeze
from gradinspect.runner.branches import Branches
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run
from gradinspect.torch_api.hooks import optimizer_steps
from gradinspect.torch_api.patching.forks import pause_in_children, stop_pausing

_ALL_AT_ONCE = "all of the model runs in compiled code, whose backward returns all gradients together"


class StepPlanObserver(Observer[PlannedSteps]):
    """Watches the first steps of a program that a plan has changed."""

    takes_any_call = True

    def __init__(self, run: Run, num_steps: int, plan: Plan, branches: Branches | None = None) -> None:
        """Start before the program does.

        Args:
            run: The program.
            num_steps: To watch.
            plan: What is changed from the start.
            branches: Asks for plans that change modules and optimizers besides, in the last step.
        """
        self._run = run
        self._branches = branches
        self._is_branch = False  # then only its peak, its work and what it moves are asked for
        self._steps = StepMemoryObserver(run, num_steps)
        self._second_runs = SecondRuns(self.failed)
        second_runs = self._second_runs if run.request.fake else None
        self._applied = AppliedPlan(plan, run, self._before_call, second_runs)
        self._tally = FlopTally(lambda: self._steps.is_counting, lambda: self._steps.phases.is_before_step)
        self._offloads = any(isinstance(change, Offload) for change in plan.changes)
        self._moved = MovedBytes(lambda: self._steps.is_counting)
        self._can_offload = run.request.counts_as_cuda
        self._uses = ModuleUses(run, self._applied.roots)
        self._backward = ("", "")
        self._held = HeldVariables(run.base_folder)
        self._loss = ProjectedLoss(run, self._applied.roots)
        self._zeroed = ZeroedGradients(run, self._steps.phases)
        self._optimizers = OptimizerUses(run, self._steps.phases)

    @property
    def is_partial(self) -> bool:  # type: ignore[override]  # it changes
        """Whether steps that were asked for are still to come."""
        return self._steps.is_partial

    @property
    def has_left(self) -> bool:  # type: ignore[override]  # it changes
        """Whether all steps that were asked for are complete."""
        return self._steps.has_left

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Change the program's modules, follow its memory, and count its work."""
        with ExitStack() as stack:
            if self._run.request.fake:
                # first: it holds arguments, and the mode of the steps' memory counts who holds them
                stack.enter_context(OperatorCalls(*self._counted(), note=self.failed))
                self._run.recorder.listeners.extend((self._loss, self._optimizers))
                self._uses.attach(self.failed)
            stack.enter_context(optimizer_steps(before=self._optimizers.step, note=self.failed))
            stack.enter_context(self._steps.attached())
            stack.enter_context(self._applied)
            stack.enter_context(self._zeroed)
            stack.enter_context(optimizer_steps(before=self._zeroed.step, note=self.failed))
            yield

    def _counted(self) -> tuple[OperatorListener, ...]:
        """Return what looks at operators, which costs each of them time."""
        listeners = self._tally.add, self._second_runs.add
        return (*listeners, self._moved.add) if self._offloads else listeners

    def _before_call(self) -> None:
        """Wait before the last step, in which other plans differ; a copy of this process goes on with each.

        A copy ends where the next step would begin. What runs without gradients before, such as a validation, belongs
        to the last one.
        """
        if self._is_branch and self._steps.has_left and torch.is_grad_enabled():
            self._run.stop(sys._getframe())
        branches, calls = self._branches, self._run.interceptor.counts
        if branches is None or not self._steps.is_before_last:
            return
        if not branches.can_wait(engine_has_run=calls.backwards + calls.grads > 0):
            return
        self._branches = None
        note_before_freeze()  # which comes with waiting
        stop_pausing(self._run.recorder)  # a copy goes on recording, unlike a child of the program
        request = branches.wait()
        pause_in_children(self._run.recorder)
        self._run.interceptor.pid = getpid()
        if request is None:  # copies have said what there is to say
            self._run.stop(sys._getframe())
        plan = NO_CHANGE if request is None else msgspec.json.decode(request, type=Plan)
        if plan.changes:
            self._applied.add(plan)
            self._steps.ledgers.forget_steps()
            self._is_branch = True
            listeners = self._run.recorder.listeners
            listeners[:] = [
                one for one in listeners if one not in (self._loss, self._optimizers, self._uses.unrepeatable)
            ]

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a backward call as `fit` does, and at what the modules hold for it."""
        self.problem = self.problem or self._applied.problem or self._steps.problem
        self._zeroed.backward(adds=call.kind == "backward")
        user = own_frame(call.frame)
        if user is not None:
            record = line_record(user.f_code, line_at(user), self._run.base_folder)
            self._backward = (f"{record.file}:{record.line}", record.code)
        outputs = [output for output in call.outputs if isinstance(output, torch.Tensor)]
        self._can_offload = self._can_offload or any(output.device.type != "cpu" for output in outputs)
        end = self._steps.on_call(call)
        self._optimizers.backward()
        self._applied.backward_begins()
        if end is not None and self._run.request.fake and not self._is_branch:
            self._uses.note(self._steps.ledgers)
            self._held.note(call.frame, self._steps.allocations_of)
        return end

    def settle(self) -> None:
        """Store the result so far."""
        self._steps.settle()

    def has_result(self) -> bool:
        """Return whether there was a backward call."""
        return self._steps.has_result()

    def result(self) -> PlannedSteps | None:
        """Return what was seen; None before the first backward call."""
        memory = self._steps.result()
        if memory is None:
            return None
        moved_bytes = self._moved.num_bytes // max(len(memory.steps), 1)
        if self._is_branch:
            return PlannedSteps(
                memory=memory,
                flops=self._tally.flops,
                products=(),
                roots=(),
                uses=(),
                moved_bytes=moved_bytes,
                second_run=self._second_runs.difference,
            )
        refused = self._optimizers.refused or (_ALL_AT_ONCE if self._uses.is_compiled_whole else "")
        deletions, held = self._held.found(self._steps.ledgers.meant)
        return PlannedSteps(
            memory=memory,
            flops=self._tally.flops,
            products=tuple(sorted(self._tally.operators)),
            roots=self._uses.roots,
            uses=self._uses.uses,
            release=None if self._optimizers.keeps_gradients else self._zeroed.release,
            stepping=None if refused else self._optimizers.offer,
            without_foreach=self._optimizers.without_foreach,
            fused=self._optimizers.fused,
            stepping_refused=refused,
            deletions=deletions,
            backward=self._backward,
            chunked=self._loss.offers(),
            held=held,
            moved_bytes=moved_bytes,
            can_offload=self._can_offload,
            other_states=self._optimizers.other_states,
            optimizer_names=tuple(self._optimizers.names),
            alternates=self._zeroed.alternates,
            scratch=self._steps.measured_scratch,
            second_run=self._second_runs.difference,
        )
