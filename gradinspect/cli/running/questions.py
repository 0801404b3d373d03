"""The observer of each verb, and what it needs. Names observers without importing torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
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
    from gradinspect.runner.observer import MakeObserver, Observer
    from gradinspect.runner.run import Run

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Question(Generic[T]):
    """What to look for in a run."""

    observe: "MakeObserver[T]"
    a_capture_cannot: str = ""  # what a capture file cannot do, in words; "": it can be used
    needs_gradients: bool = False  # of a capture file
    needs_values: bool = True  # fake tensors are not enough
    needs_backward: bool = True  # it is about the program's own backward, not about the graph that one builds
    stops_together: bool = False  # each rank of a job stops at the same call as the others
    summarize: "Callable[[Any], RankResult]" = no_result  # what a rank sends of its result
    merge: "Callable[[T, Mapping[int, bytes]], T] | None" = None  # adds what other ranks sent to that of rank 0


def _observer(path: str, *arguments: object, **options: object) -> "MakeObserver[Any]":
    """Name an observer, whose module is imported when torch was, as the program would import it.

    Args:
        path: Its module and name, below our package.
        arguments: What it is given after the run.
        options: The same, by name.
    """

    def make(run: "Run") -> "Observer[Any]":
        module, _, name = path.rpartition(".")
        observer: Observer[Any] = getattr(import_module(f"gradinspect.{module}"), name)(run, *arguments, **options)
        return observer

    return make


def _of_first_backward(path: str, *arguments: object) -> "MakeObserver[Any]":
    """Name an observer of the requested call; by default, of the first backward() or autograd.grad()."""
    return _observer("observers.graphs.backward_first.backward_first", _observer(path, *arguments))


def graph() -> "Question[Graph]":
    """Ask for the graph at one call."""
    return Question(
        observe=_of_first_backward("observers.graphs.graph_observer.GraphObserver"),
        needs_values=False,
        needs_backward=False,
        summarize=result_of_graph,
    )


def graphs() -> "Question[tuple[Graph, ...]]":
    """Ask for the graph of each different backward call of a training step."""
    return Question(
        observe=_of_first_backward("observers.graphs.phases_observer.PhasesObserver"),
        a_capture_cannot="show a whole step",
        summarize=lambda found: result_of_graph(found[0]),
        needs_values=False,
        needs_backward=False,
    )


def gradients() -> "Question[Graph]":
    """Ask for the graph of one backward call, with the gradients that flowed through it."""
    return Question(
        observe=_of_first_backward("observers.gradients.gradient_steps_observer.GradientsObserver"),
        needs_gradients=True,
        summarize=result_of_graph,
    )


def values() -> "Question[Graph]":
    """Ask for the graph of one backward call, with fingerprints of what each node made and of the gradients it got."""
    return Question(
        observe=_of_first_backward("observers.gradients.values_observer.ValuesObserver"),
        a_capture_cannot="be fingerprinted",
        summarize=result_of_graph,
    )


def gradient_steps(num_steps: int) -> "Question[GradientSteps]":
    """Ask for the gradients of several consecutive backward calls."""
    return Question(
        observe=_of_first_backward("observers.gradients.gradient_steps_observer.GradientStepsObserver", num_steps),
        a_capture_cannot=f"show {num_steps} steps",
        summarize=result_of_graph_in,
    )


def timeline() -> "Question[Timeline]":
    """Ask for the time of each node."""
    return Question(
        observe=_of_first_backward("observers.gradients.timeline_observer.TimelineObserver"),
        a_capture_cannot="be timed",
        summarize=result_of_graph_in,
    )


def buckets() -> "Question[BucketReport]":
    """Ask for the buckets of DistributedDataParallel, and the order in which backward fills them."""
    return Question(
        observe=_of_first_backward("observers.gradients.buckets_observer.BucketsObserver"),
        a_capture_cannot="show buckets",
        summarize=result_of_buckets,
    )


def growth(iterations: int) -> "Question[Growth]":
    """Ask how the live graph grows over several backward calls."""
    return Question(
        observe=_of_first_backward("observers.graphs.growth_observer.GrowthObserver", iterations),
        a_capture_cannot="show several iterations",
        summarize=result_of_growth,
        needs_values=False,
    )


def budgets() -> "Question[BudgetTable]":
    """Ask what a compiled step keeps under each activation memory budget."""
    return Question(
        observe=_observer("observers.memory.budget_observer.BudgetObserver"),
        a_capture_cannot="be compiled again",
    )


def findings(num_calls: int | None, *, gradcheck: bool, is_on: Callable[[str], bool]) -> "Question[Findings]":
    """Ask for the problems in several backward calls.

    Args:
        num_calls: How many; None: until all is known.
        gradcheck: Whether to check custom Functions numerically too.
        is_on: Whether findings of a code are reported.
    """
    return Question(
        observe=_observer("checks.evidence.observer.ChecksObserver", num_calls, gradcheck=gradcheck, is_on=is_on),
        a_capture_cannot="be checked",
        summarize=result_of_findings,
        merge=with_findings_of,
        stops_together=True,
    )


def overview() -> "Question[Overview]":
    """Ask for the headlines of a run."""
    return Question(
        observe=_observer("checks.evidence.overview_observer.OverviewObserver"),
        summarize=result_of_graph_in,
    )


def stepping(
    listener: "StepListener", grad_output: Literal["ones", "random", "rows"] | None
) -> "Question[SteppingOutcome]":
    """Ask for each node of a backward as it runs, and the outcome of the steps."""
    return Question(
        observe=_observer("observers.stepping.stepping_observer.SteppingObserver", listener, grad_output),
        a_capture_cannot="be stepped through",
        summarize=result_of_graph_in,
        needs_backward=False,
    )


def step_memory(num_steps: int) -> "Question[StepMemory]":
    """Ask how much memory `num_steps` whole training steps need."""
    return Question(
        observe=_observer("observers.memory.step_memory_observer.StepMemoryObserver", num_steps),
        a_capture_cannot="show the memory of a whole step",
        summarize=result_of_step_memory,
        needs_values=False,
    )


def read_values(num_steps: int) -> "Question[ReadValues]":
    """Ask what `num_steps` training steps read of their tensors."""
    return Question(
        observe=_observer("observers.memory.read_values_observer.ReadValuesObserver", num_steps),
        a_capture_cannot="be run again",
    )


def planned_steps(num_steps: int, plan: "Plan", branches: "Branches | None" = None) -> "Question[PlannedSteps]":
    """Ask how much memory `num_steps` training steps need under a plan, and what else could be changed."""
    return Question(
        observe=_observer("observers.planning.step_plan_observer.StepPlanObserver", num_steps, plan, branches),
        a_capture_cannot="be planned for",
        needs_values=False,
    )


def step_values(how: "CompiledRun") -> "Question[StepValues]":
    """Ask what the first step computes, or how far that is from what an earlier run has kept."""
    return Question(
        observe=_of_first_backward("observers.gradients.step_values_observer.StepValuesObserver", how),
        a_capture_cannot="be run again",
    )


def real_steps(num_steps: int, plan: "Plan") -> "Question[RealSteps]":
    """Ask how long `num_steps` training steps take under a plan, and for their gradients."""
    return Question(
        observe=_observer("observers.planning.real_steps_observer.RealStepsObserver", num_steps, plan),
        a_capture_cannot="be planned for",
    )
