"""Run a program once for each plan."""

from dataclasses import replace

from gradinspect.analyses.planning.changes import NO_CHANGE, Plan, split_of
from gradinspect.analyses.planning.planned_steps import PlannedSteps, outcome_of
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.analyses.planning.trial import RealSteps
from gradinspect.cli.running import questions
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.cli.running.size_search import WholeSize, with_size
from gradinspect.errors import GradInspectError, ScriptFailedError
from gradinspect.request import Request


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
        self._runs = ForkedRuns(request, ("analyses.planning",))

    def plain(self) -> PlannedSteps:
        """Run the program as it is, on fake tensors; it may print.

        Raises:
            GradInspectError: There was nothing to see.
            ScriptFailedError: The program failed.
        """
        return self._runs.run(
            self._sized(self._request, NO_CHANGE), questions.planned_steps(self._num_steps, NO_CHANGE), PlannedSteps
        )

    def measure(self, plan: Plan) -> PlanOutcome:
        """Run a plan on fake tensors."""
        question = questions.planned_steps(self._num_steps, plan)
        try:
            return outcome_of(
                plan, self._runs.run(self._sized(self._request, plan), question, PlannedSteps, is_silent=True)
            )
        except (GradInspectError, ScriptFailedError) as error:
            return PlanOutcome(plan=plan, failure=str(error))

    def real_memory(self, plan: Plan) -> PlannedSteps:
        """Run a plan with values, and measure what the allocator gives out."""
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
