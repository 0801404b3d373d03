"""What to look for in a run: an observer, named without importing torch, and what it needs.

Questions that one verb asks are in its own file; those of several, and of `running/`, are here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gradinspect.cli.running.rank_results import RankResult, no_result, result_of_graph, result_of_step_memory

if TYPE_CHECKING:
    from gradinspect.analyses.diff.compiled import StepValues
    from gradinspect.analyses.memory.budgets import BudgetTable
    from gradinspect.analyses.memory.step import StepMemory
    from gradinspect.analyses.planning.changes import Plan
    from gradinspect.analyses.planning.planned_steps import PlannedSteps
    from gradinspect.analyses.planning.trial import RealSteps
    from gradinspect.graph import Graph
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


def observed_by(path: str, *arguments: object, **options: object) -> "MakeObserver[Any]":
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


def at_first_backward(path: str, *arguments: object) -> "MakeObserver[Any]":
    """Name an observer of the requested call; by default, of the first backward() or autograd.grad()."""
    return observed_by("observers.graphs.backward_first.backward_first", observed_by(path, *arguments))


def graph() -> "Question[Graph]":
    """Ask for the graph at one call."""
    return Question(
        observe=at_first_backward("observers.graphs.graph_observer.GraphObserver"),
        needs_values=False,
        needs_backward=False,
        summarize=result_of_graph,
    )


def graphs() -> "Question[tuple[Graph, ...]]":
    """Ask for the graph of each different backward call of a training step."""
    return Question(
        observe=at_first_backward("observers.graphs.phases_observer.PhasesObserver"),
        a_capture_cannot="show a whole step",
        summarize=lambda found: result_of_graph(found[0]),
        needs_values=False,
        needs_backward=False,
    )


def gradients() -> "Question[Graph]":
    """Ask for the graph of one backward call, with the gradients that flowed through it."""
    return Question(
        observe=at_first_backward("observers.gradients.gradient_steps_observer.GradientsObserver"),
        needs_gradients=True,
        summarize=result_of_graph,
    )


def values() -> "Question[Graph]":
    """Ask for the graph of one backward call, with fingerprints of what each node made and of the gradients it got."""
    return Question(
        observe=at_first_backward("observers.gradients.values_observer.ValuesObserver"),
        a_capture_cannot="be fingerprinted",
        summarize=result_of_graph,
    )


def budgets() -> "Question[BudgetTable]":
    """Ask what a compiled step keeps under each activation memory budget."""
    return Question(
        observe=observed_by("observers.memory.budget_observer.BudgetObserver"),
        a_capture_cannot="be compiled again",
    )


def step_memory(num_steps: int) -> "Question[StepMemory]":
    """Ask how much memory `num_steps` whole training steps need."""
    return Question(
        observe=observed_by("observers.memory.step_memory_observer.StepMemoryObserver", num_steps),
        a_capture_cannot="show the memory of a whole step",
        summarize=result_of_step_memory,
        needs_values=False,
    )


def read_values(num_steps: int) -> "Question[ReadValues]":
    """Ask what `num_steps` training steps read of their tensors."""
    return Question(
        observe=observed_by("observers.memory.read_values_observer.ReadValuesObserver", num_steps),
        a_capture_cannot="be run again",
    )


def planned_steps(num_steps: int, plan: "Plan", branches: "Branches | None" = None) -> "Question[PlannedSteps]":
    """Ask how much memory `num_steps` training steps need under a plan, and what else could be changed."""
    return Question(
        observe=observed_by("observers.planning.step_plan_observer.StepPlanObserver", num_steps, plan, branches),
        a_capture_cannot="be planned for",
        needs_values=False,
    )


def step_values(how: "CompiledRun") -> "Question[StepValues]":
    """Ask what the first step computes, or how far that is from what an earlier run has kept."""
    return Question(
        observe=at_first_backward("observers.gradients.step_values_observer.StepValuesObserver", how),
        a_capture_cannot="be run again",
    )


def real_steps(num_steps: int, plan: "Plan") -> "Question[RealSteps]":
    """Ask how long `num_steps` training steps take under a plan, and for their gradients."""
    return Question(
        observe=observed_by("observers.planning.real_steps_observer.RealStepsObserver", num_steps, plan),
        a_capture_cannot="be planned for",
    )
