"""The observer of each verb, and what it needs. Names observers without importing torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from gradinspect.cli.running.rank_results import (
    RankResult,
    no_result,
    result_of_buckets,
    result_of_findings,
    result_of_graph,
    result_of_graph_in,
    result_of_growth,
    result_of_step_memory,
    with_findings_of,
)

if TYPE_CHECKING:
    from gradinspect.analyses.diff.compiled import StepValues
    from gradinspect.analyses.gradients.buckets import BucketReport
    from gradinspect.analyses.gradients.stepping import SteppingOutcome
    from gradinspect.analyses.gradients.steps import GradientSteps
    from gradinspect.analyses.gradients.timeline import Timeline
    from gradinspect.analyses.memory.budgets import BudgetTable
    from gradinspect.analyses.memory.growth import Growth
    from gradinspect.analyses.memory.step import StepMemory
    from gradinspect.analyses.planning.changes import Plan
    from gradinspect.analyses.planning.planned_steps import PlannedSteps
    from gradinspect.analyses.planning.trial import RealSteps
    from gradinspect.checks.findings import Findings
    from gradinspect.checks.overview import Overview
    from gradinspect.graph import Graph
    from gradinspect.observers.stepping.lockstep import StepListener
    from gradinspect.reads import ReadValues
    from gradinspect.request import CompiledRun
    from gradinspect.runner.branches import Branches
    from gradinspect.runner.observer import Observer
    from gradinspect.runner.run import Run

# ruff: noqa: PLC0415  # torch is imported as the program would import it, before any observer is

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What to look for in a run."""

    observe: "Callable[[Run], Observer[T]]"
    packages: tuple[str, ...] = ()  # those of ours that it needs, and most others do not
    a_capture_cannot: str = ""  # what a capture file cannot do, in words; "": it can be used
    needs_gradients: bool = False  # of a capture file
    needs_values: bool = False  # fake tensors are not enough
    needs_backward: bool = False  # it is about the program's own backward, not about the graph that one builds
    stops_together: bool = False  # each rank of a job stops at the same call as the others
    summarize: "Callable[[Any], RankResult]" = no_result  # what a rank sends of its result
    merge: "Callable[[T, Mapping[int, bytes]], T] | None" = None  # adds what other ranks sent to that of rank 0


def graph() -> "Question[Graph]":
    """Ask for the graph at one call."""

    def observe(run: "Run") -> "Observer[Graph]":
        from gradinspect.observers.graphs.backward_first import backward_first
        from gradinspect.observers.graphs.graph_observer import GraphObserver

        return GraphObserver(run) if run.request.creates_graph else backward_first(run, GraphObserver)

    return Question(observe=observe, summarize=result_of_graph)


def graphs() -> "Question[tuple[Graph, ...]]":
    """Ask for the graph of each different backward call of a training step."""

    def observe(run: "Run") -> "Observer[tuple[Graph, ...]]":
        from gradinspect.observers.graphs.backward_first import backward_first
        from gradinspect.observers.graphs.phases_observer import PhasesObserver

        return backward_first(run, PhasesObserver)

    return Question(
        observe=observe,
        a_capture_cannot="show a whole step",
        summarize=lambda found: result_of_graph(found[0]),
    )


def gradients() -> "Question[Graph]":
    """Ask for the graph of one backward call, with the gradients that flowed through it."""

    def observe(run: "Run") -> "Observer[Graph]":
        from gradinspect.observers.gradients.gradient_steps_observer import GradientsObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, GradientsObserver)

    return Question(
        observe=observe, needs_gradients=True, needs_values=True, needs_backward=True, summarize=result_of_graph
    )


def values() -> "Question[Graph]":
    """Ask for the graph of one backward call, with fingerprints of what each node made and of the gradients it got."""

    def observe(run: "Run") -> "Observer[Graph]":
        from gradinspect.observers.gradients.values_observer import ValuesObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, ValuesObserver)

    return Question(
        observe=observe,
        a_capture_cannot="be fingerprinted",
        needs_values=True,
        needs_backward=True,
        summarize=result_of_graph,
    )


def gradient_steps(num_steps: int) -> "Question[GradientSteps]":
    """Ask for the gradients of several consecutive backward calls."""

    def observe(run: "Run") -> "Observer[GradientSteps]":
        from gradinspect.observers.gradients.gradient_steps_observer import GradientStepsObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, lambda run: GradientStepsObserver(run, num_steps))

    return Question(
        observe=observe,
        a_capture_cannot=f"show {num_steps} steps",
        needs_values=True,
        needs_backward=True,
        summarize=result_of_graph_in,
    )


def timeline() -> "Question[Timeline]":
    """Ask for the time of each node."""

    def observe(run: "Run") -> "Observer[Timeline]":
        from gradinspect.observers.gradients.timeline_observer import TimelineObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, TimelineObserver)

    return Question(
        observe=observe,
        a_capture_cannot="be timed",
        needs_values=True,
        needs_backward=True,
        summarize=result_of_graph_in,
    )


def buckets() -> "Question[BucketReport]":
    """Ask for the buckets of DistributedDataParallel, and the order in which backward fills them."""

    def observe(run: "Run") -> "Observer[BucketReport]":
        from gradinspect.observers.gradients.buckets_observer import BucketsObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, BucketsObserver)

    return Question(
        observe=observe,
        a_capture_cannot="show buckets",
        needs_values=True,
        needs_backward=True,
        summarize=result_of_buckets,
    )


def growth(iterations: int) -> "Question[Growth]":
    """Ask how the live graph grows over several backward calls."""

    def observe(run: "Run") -> "Observer[Growth]":
        from gradinspect.observers.graphs.backward_first import backward_first
        from gradinspect.observers.graphs.growth_observer import GrowthObserver

        return backward_first(run, lambda run: GrowthObserver(run, iterations))

    return Question(
        observe=observe, a_capture_cannot="show several iterations", needs_backward=True, summarize=result_of_growth
    )


def budgets() -> "Question[BudgetTable]":
    """Ask what a compiled step keeps under each activation memory budget."""

    def observe(run: "Run") -> "Observer[BudgetTable]":
        from gradinspect.observers.memory.budget_observer import BudgetObserver

        return BudgetObserver(run)

    return Question(observe=observe, a_capture_cannot="be compiled again", needs_values=True, needs_backward=True)


def findings(num_calls: int | None, *, gradcheck: bool) -> "Question[Findings]":
    """Ask for the problems in several backward calls.

    Args:
        num_calls: How many; None: until all is known.
        gradcheck: Whether to check custom Functions numerically too.
    """

    def observe(run: "Run") -> "Observer[Findings]":
        from gradinspect.checks.evidence.observer import ChecksObserver

        return ChecksObserver(run, num_calls, gradcheck=gradcheck)

    return Question(
        observe=observe,
        packages=("checks.evidence", "checks.rules"),
        a_capture_cannot="be checked",
        needs_values=True,
        needs_backward=True,
        summarize=result_of_findings,
        merge=with_findings_of,
        stops_together=True,
    )


def overview() -> "Question[Overview]":
    """Ask for the headlines of a run."""

    def observe(run: "Run") -> "Observer[Overview]":
        from gradinspect.checks.evidence.overview_observer import OverviewObserver

        return OverviewObserver(run)

    return Question(
        observe=observe,
        packages=("checks.evidence", "checks.rules"),
        needs_values=True,
        needs_backward=True,
        summarize=result_of_graph_in,
    )


def stepping(
    listener: "StepListener", grad_output: Literal["ones", "random", "rows"] | None
) -> "Question[SteppingOutcome]":
    """Ask for each node of a backward as it runs, and the outcome of the steps."""

    def observe(run: "Run") -> "Observer[SteppingOutcome]":
        from gradinspect.observers.stepping.stepping_observer import SteppingObserver

        return SteppingObserver(run, listener, grad_output)

    return Question(
        observe=observe, a_capture_cannot="be stepped through", needs_values=True, summarize=result_of_graph_in
    )


def step_memory(num_steps: int) -> "Question[StepMemory]":
    """Ask how much memory `num_steps` whole training steps need."""

    def observe(run: "Run") -> "Observer[StepMemory]":
        from gradinspect.observers.memory.step_memory_observer import StepMemoryObserver

        return StepMemoryObserver(run, num_steps)

    return Question(
        observe=observe,
        a_capture_cannot="show the memory of a whole step",
        needs_backward=True,
        summarize=result_of_step_memory,
    )


def read_values(num_steps: int) -> "Question[ReadValues]":
    """Ask what `num_steps` training steps read of their tensors."""

    def observe(run: "Run") -> "Observer[ReadValues]":
        from gradinspect.observers.memory.read_values_observer import ReadValuesObserver

        return ReadValuesObserver(run, num_steps)

    return Question(observe=observe, a_capture_cannot="be run again", needs_values=True, needs_backward=True)


def planned_steps(num_steps: int, plan: "Plan", branches: "Branches | None" = None) -> "Question[PlannedSteps]":
    """Ask how much memory `num_steps` training steps need under a plan, and what else could be changed."""

    def observe(run: "Run") -> "Observer[PlannedSteps]":
        from gradinspect.observers.planning.step_plan_observer import StepPlanObserver

        return StepPlanObserver(run, num_steps, plan, branches)

    return Question(observe=observe, a_capture_cannot="be planned for", needs_backward=True)


def step_values(how: "CompiledRun") -> "Question[StepValues]":
    """Ask what the first step computes, or how far that is from what an earlier run has kept."""

    def observe(run: "Run") -> "Observer[StepValues]":
        from gradinspect.observers.gradients.step_values_observer import StepValuesObserver
        from gradinspect.observers.graphs.backward_first import backward_first

        return backward_first(run, lambda run: StepValuesObserver(run, how))

    return Question(observe=observe, a_capture_cannot="be run again", needs_values=True, needs_backward=True)


def real_steps(num_steps: int, plan: "Plan") -> "Question[RealSteps]":
    """Ask how long `num_steps` training steps take under a plan, and for their gradients."""

    def observe(run: "Run") -> "Observer[RealSteps]":
        from gradinspect.observers.planning.real_steps_observer import RealStepsObserver

        return RealStepsObserver(run, num_steps, plan)

    return Question(observe=observe, a_capture_cannot="be planned for", needs_values=True, needs_backward=True)
