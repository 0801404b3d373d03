"""Run a program once for each plan."""

from dataclasses import replace
from time import monotonic
from typing import NamedTuple

import msgspec

from gradinspect.analyses.planning.changes import (
    NO_CHANGE,
    ModuleChange,
    Offload,
    OptimizerChange,
    Plan,
    split_of,
)
from gradinspect.analyses.planning.planned_steps import PlannedSteps, outcome_of
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.trial import RealSteps
from gradinspect.cli.running import questions
from gradinspect.cli.running.forked_runs import ForkedRuns, result_of
from gradinspect.cli.running.size_search import WholeSize, with_size
from gradinspect.cli.running.values_first import values_of
from gradinspect.errors import GradInspectError, MissingValuesError, ScriptFailedError
from gradinspect.request import Request
from gradinspect.runner.branches import WaitingRun

MOST_WAITING = 3  # processes: the plain program, what most plans build on, and what is tried


class _Begun(NamedTuple):
    """A run that may wait in its last step."""

    run: WaitingRun
    plain: PlannedSteps  # without any other change


class PlannedRuns:
    """Runs one program again and again."""

    def __init__(self, request: Request, num_steps: int, size: WholeSize | None = None) -> None:
        """Prepare.

        Args:
            request: The program.
            num_steps: To watch.
            size: Of its batch, which a plan may split.
        """
        self._size = size
        self._request = request
        self._with_values = replace(request, fake=False, answers_reads=False, hint=None)
        self._num_steps = num_steps
        self._runs = ForkedRuns(request)
        self._begun: dict[Plan, _Begun] = {}
        self._alternates = False
        self._scratch: dict[str, int] = {}  # of kernels, each measured in one run
        self.start_s = 0.0  # seconds that the last start on fake tensors took

    def plain(self) -> PlannedSteps:
        """Run the program as it is, on fake tensors; it may print.

        Raises:
            GradInspectError: There was nothing to see.
            ScriptFailedError: The program failed.
        """
        plain = self._plain()
        self._alternates = plain.alternates
        return plain

    def _plain(self) -> PlannedSteps:
        try:
            plain = self._start(NO_CHANGE, is_silent=False).plain
        except MissingValuesError:
            if not self._take_values():
                raise
            return self._start(NO_CHANGE, is_silent=True).plain
        if not plain.memory.is_bound or not self._take_values():
            return plain
        self.close()
        return self._start(NO_CHANGE, is_silent=True).plain

    def _take_values(self) -> bool:
        """Run the program with values, for all runs on fake tensors that follow; return whether that could be done.

        The plain program reads them in its order; under a plan, what runs again in backward reads what it has read.
        """
        request = self._sized(self._request, NO_CHANGE)
        reads = values_of(self._runs, request, self._num_steps)
        self._request = replace(self._request, reads=reads)
        return reads is not None

    def measure(self, plan: Plan, *, whole: bool = False) -> PlanOutcome:
        """Run a plan on fake tensors.

        Args:
            plan: What to change.
            whole: Whether to make all changes from the start.
        """
        base = self._base_of(plan)
        try:
            if base == plan:
                return outcome_of(plan, (self._begun.get(plan) or self._start(plan, is_silent=True)).plain)
            quick = None if whole else self._in_last_step(base, plan)
            return quick or outcome_of(plan, self._whole(plan))
        except (GradInspectError, ScriptFailedError) as error:
            return PlanOutcome(plan=plan, failure=str(error))

    def _base_of(self, plan: Plan) -> Plan:
        """Return what must be changed from the start; where optimizers alternate, one may have gradients of another."""
        later = ModuleChange if self._alternates else ModuleChange | OptimizerChange
        return Plan(changes=tuple(change for change in plan.changes if not isinstance(change, later)))

    def _in_last_step(self, base: Plan, plan: Plan) -> PlanOutcome | None:
        """Run the last step under a plan, after steps under its base; None if that cannot be done here.

        Where the last step needs most, as it has all of the optimizer's state, it does so under each of these plans.
        """
        if any(isinstance(change, Offload) for change in plan.changes):
            return None
        began = self._begun.get(base) or self._start(base, is_silent=True)
        self._begun[base] = self._begun.pop(base)  # the last one that is closed
        if not began.run.is_waiting or not _last_needs_most(began.plain):
            return None
        rest = msgspec.json.encode(Plan(changes=tuple(change for change in plan.changes if change not in base.changes)))
        try:
            steps = result_of(self._request, PlannedSteps, *began.run.ask(rest, is_silent=True))
        except (GradInspectError, ScriptFailedError):
            return None  # the whole run may say the same
        outcome, flops = outcome_of(plan, steps), began.plain.flops
        return msgspec.structs.replace(
            outcome, flops=flops + self._num_steps * (outcome.flops - flops), only_last_step=self._num_steps > 1
        )

    def _start(self, base: Plan, *, is_silent: bool) -> "_Begun":
        """Run a plan, and let it wait in its last step for others, where it can."""
        while len(self._begun) >= MOST_WAITING:
            self._begun.pop(next(iter(self._begun))).run.close()
        begun = monotonic()
        request = self._fake_request(base)
        waits = not request.counts_as_cuda  # what an allocator has reserved depends on all steps
        run = self._runs.waiting(
            request,
            lambda branches: questions.planned_steps(self._num_steps, base, branches if waits else None),
            is_silent=is_silent,
        )
        try:
            plain = result_of(request, PlannedSteps, *run.ask(msgspec.json.encode(NO_CHANGE), is_silent=is_silent))
        except BaseException:
            run.close()
            raise
        self._scratch.update(plain.scratch)
        self._begun[base] = _Begun(run, plain)
        self.start_s = monotonic() - begun
        return self._begun[base]

    def close(self) -> None:
        """End what still waits."""
        for begun in self._begun.values():
            begun.run.close()
        self._begun.clear()

    def _whole(self, plan: Plan) -> PlannedSteps:
        question = questions.planned_steps(self._num_steps, plan)
        steps = self._runs.run(self._fake_request(plan), question, PlannedSteps, is_silent=True)
        self._scratch.update(steps.scratch)
        return steps

    def _fake_request(self, plan: Plan) -> Request:
        return replace(self._sized(self._request, plan), scratch=self._scratch)

    def real_memory(self, plan: Plan) -> PlannedSteps:
        """Run a plan with values, and measure what is allocated."""
        question = questions.planned_steps(self._num_steps, plan)
        return self._runs.run(self._sized(self._with_values, plan), question, PlannedSteps, is_silent=True)

    def real_steps(self, plan: Plan) -> RealSteps:
        """Run a plan with values, for its times and its gradients."""
        question = questions.real_steps(self._num_steps + 1, plan)
        return self._runs.run(self._sized(self._with_values, plan), question, RealSteps, is_silent=True)

    def _sized(self, request: Request, plan: Plan) -> Request:
        """Give the program the batch of a plan."""
        split = split_of(plan)
        if self._size is None:
            return request
        return with_size(request, self._size.name, self._size.number if split is None else split.part_size)


def _last_needs_most(steps: PlannedSteps) -> bool:
    """Return whether no step needs more than the last one, as a larger batch would."""
    peaks = [step.peak_bytes for step in steps.memory.steps]
    return bool(peaks) and max(peaks) == peaks[-1]
