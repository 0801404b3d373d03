"""Run a program compiled, in eager and checkpointed, and compare what its steps keep."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from gradinspect.analyses.memory.budgets import BudgetTable, CompiledMemory, UnchangedRun
from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.planning.blocks import Block, blocks_of
from gradinspect.analyses.planning.changes import NO_CHANGE, Plan, names_shown
from gradinspect.analyses.planning.planned_steps import PlannedSteps
from gradinspect.analyses.selection.name_patterns import containing_paths
from gradinspect.analyses.structure.call_names import without_wrappers
from gradinspect.cli.running import questions
from gradinspect.cli.running.forked_runs import ForkedRuns
from gradinspect.cli.running.values_first import values_of
from gradinspect.errors import GradInspectError, MissingValuesError, ScriptFailedError
from gradinspect.graph import Graph
from gradinspect.request import Request

EAGER = "eager"
_WHY = "Does it call torch.compile, not with backend 'eager'? 'gradinspect trace' shows what torch.compile did."
_NO_BLOCKS = "No checkpoint stands beside it: no module that the program calls has repeated blocks inside."
_NOTHING = "has no backward graph of torch.compile in its first backward call, so there is no budget to choose."


def compare_budgets(request: Request) -> CompiledMemory:
    """Find out what a step of a program keeps under each budget, and without torch.compile.

    Raises:
        GradInspectError: It compiles nothing, or has no backward call.
        ScriptFailedError: It failed.
    """
    runs = ForkedRuns(request)
    compiled = runs.run(request, questions.budgets(), BudgetTable, is_silent=request.quiet)
    if not compiled.num_graphs and not compiled.notes:
        raise GradInspectError(f"'{request.label}' {_NOTHING}", _WHY)
    if not compiled.num_graphs:
        raise GradInspectError(f"'{request.label}': {compiled.notes[0]}", "Choose another backend, such as inductor.")
    return CompiledMemory(compiled=compiled, without=_without(runs, replace(request, eager=True)))


class _Seen(NamedTuple):
    """A whole step."""

    steps: PlannedSteps
    backward_bytes: int  # alive when backward begins
    peak_bytes: int  # of forward and backward


def _without(runs: ForkedRuns, request: Request) -> tuple[UnchangedRun, ...]:
    """Describe the eager step, and the one with its largest repeated block checkpointed."""
    try:
        graph = runs.run(request, questions.graph(), Graph, is_silent=True)
        kept = measure_memory(graph).extra_bytes
    except (GradInspectError, ScriptFailedError) as error:
        return (UnchangedRun(what=EAGER, problem=str(error)),)
    try:
        eager = _seen(runs, request, NO_CHANGE)
    except (GradInspectError, ScriptFailedError) as error:
        return (UnchangedRun(what=EAGER, kept_bytes=kept, problem=_why(error)),)
    other = eager.backward_bytes - kept  # weights, and what the program holds itself: the same under a plan
    own = _checkpointed_paths(graph)
    repeated = [one for one in blocks_of(eager.steps.uses) if len(one.paths) > 1]
    rows = [UnchangedRun(what=EAGER, kept_bytes=kept, peak_bytes=eager.peak_bytes - other, note=_own(repeated, own))]
    left = (one._replace(paths=tuple(path for path in one.paths if path not in own)) for one in repeated)
    block = next((one for one in left if one.paths), None)
    if block is not None:
        rows.append(_checkpointed(runs, request, block, other))
    return tuple(rows)


def _checkpointed_paths(graph: Graph) -> "_Paths":
    """Find the modules whose nodes keep nothing, since the program checkpoints them."""
    places: dict[bool, set[str]] = {True: set(), False: set()}
    for node in graph.nodes:
        statuses = {value.status for value in node.saved if value.kind == "tensor"}
        if node.module is not None and statuses:
            path = without_wrappers(graph.modules[node.module].path)
            places["checkpointed" in statuses].update(containing_paths(path))
    return _Paths(places[True], places[False])


class _Paths(NamedTuple):
    """Paths of modules."""

    checkpointed: Collection[str]  # or a part of them
    kept: Collection[str]  # or a part of them

    def __contains__(self, path: object) -> bool:
        """Whether all of a module is checkpointed."""
        own = without_wrappers(str(path))
        return own in self.checkpointed and own not in self.kept


def _own(repeated: Sequence[Block], own: _Paths) -> str:
    """Say what the program checkpoints itself, without the parts of what is named, or that there is nothing to."""
    if not own.checkpointed:
        return "" if repeated else _NO_BLOCKS
    blocks = [block for block in repeated if any(path in own for path in block.paths)]
    named = [path for block in blocks for path in block.paths if path in own]
    outer = [path for path in named if not any(path.startswith(f"{other}.") for other in named)]
    what = names_shown(blocks[0].prefix, outer) if outer else "a part of it"
    return f"The program checkpoints {what} itself, in eager as under torch.compile: every row has that."


def _checkpointed(runs: ForkedRuns, request: Request, block: Block, other: int) -> UnchangedRun:
    what = f"{EAGER}, checkpoint {names_shown(block.prefix, block.paths)}"
    try:
        seen = _seen(runs, request, Plan(changes=(block.checkpointed(block.paths),)))
    except (GradInspectError, ScriptFailedError) as error:
        return UnchangedRun(what=what, problem=_why(error))
    return UnchangedRun(what=what, kept_bytes=seen.backward_bytes - other, peak_bytes=seen.peak_bytes - other)


def _why(error: Exception) -> str:
    """Say why a step on fake tensors is not known, without the advice to run without them: nobody asked for them."""
    return error.message if isinstance(error, MissingValuesError) else str(error)


def _seen(runs: ForkedRuns, request: Request, plan: Plan) -> _Seen:
    """Watch a step on fake tensors, with the values that a real one reads where it needs them."""
    question = questions.planned_steps(1, plan)
    fake = replace(request, fake=True, answers_reads=True)
    try:
        steps = runs.run(fake, question, PlannedSteps, is_silent=True)
    except (GradInspectError, ScriptFailedError):
        reads = values_of(runs, fake, 1, tells=False)
        again = request if reads is None else replace(fake, reads=reads)
        steps = runs.run(again, question, PlannedSteps, is_silent=True)
    first = steps.memory.steps[0]
    phases = ("forward", "backward")
    curve = [point.num_bytes for point in steps.memory.curve if point.step == first.number and point.phase in phases]
    return _Seen(steps, first.backward_bytes, max(curve, default=first.backward_bytes))
