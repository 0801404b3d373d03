"""Change a running program as a plan says, from outside: by the code that the plan prints for its user.

A module is changed when the outermost module around it is called for the first time, before anything in it has run.

NOTE [A Sequential that has been called]
torch looks up what a call runs before it calls hooks. So where the outermost module is a Sequential that is cut into
segments, the call that has begun would run it whole. It is given its new forward as its only part, for this call.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, Self

from torch import nn
from torch.optim import Optimizer

from gradinspect.analyses.planning.changes import (
    Change,
    ChunkLoss,
    DeleteVariable,
    Fused,
    Plan,
    ReleaseGradients,
    StepInBackward,
    WithoutForeach,
    module_changes_of,
    split_of,
)
from gradinspect.analyses.planning.code import PLAN_FILE, ROOT, STEP_IN_BACKWARD, applied_code, stepping_code
from gradinspect.analyses.planning.deletions import Spot
from gradinspect.analyses.planning.saved_code import HERE, NOWHERE
from gradinspect.errors import GradInspectError
from gradinspect.observers.planning.accumulation import Accumulation
from gradinspect.observers.planning.chunked_loss import ChunkedLoss
from gradinspect.observers.planning.optimizer_uses import can_be_fused, uses_foreach
from gradinspect.observers.planning.outermost_modules import OutermostModules
from gradinspect.observers.planning.second_runs import SecondRuns
from gradinspect.recording.frames import line_at, line_record
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.runner.programs.edited_source import edited_source
from gradinspect.runner.run import Run
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.hooks import optimizer_steps
from gradinspect.torch_api.patching.patches import patched


class AppliedPlan:
    """Carries out a plan while it is active. Use it as a context manager, around the program."""

    def __init__(
        self,
        plan: Plan,
        run: Run,
        before_call: Callable[[], None] = lambda: None,
        second_runs: SecondRuns | None = None,
    ) -> None:
        """Set up.

        Args:
            plan: What to change.
            run: The program.
            before_call: Is called before each call of an outermost module.
            second_runs: Watches checkpoints.
        """
        self._second_runs = second_runs
        self._before_call = before_call
        self.problem: Exception | None = None
        self._recorder = run.recorder
        self.roots = OutermostModules(run.recorder)
        self._base_folder = run.base_folder
        self._plan = plan
        self._host = NOWHERE if run.request.fake else HERE
        self._chunked = next((change for change in plan.changes if isinstance(change, ChunkLoss)), None)
        self._loss = None if self._chunked is None else ChunkedLoss(self._chunked.chunks, self._failed, self._is_edited)
        self._handles = ExitStack()
        self._of_optimizers = _of_optimizers(plan)  # until they are made
        self._called: nn.Module | None = None  # the outermost one whose hooks run

    def __enter__(self) -> Self:
        """Wait for the program's modules and optimizers."""
        self._handles.callback(self._recorder.before_modules(self._module_called, self._failed).remove)
        self._release_after_steps(self._plan)
        if self._loss is not None:
            self._handles.enter_context(self._loss)
        split = split_of(self._plan)
        if split is not None:
            self._handles.enter_context(Accumulation(split.parts).applied())
        self._handles.enter_context(edited_source(self._deletions()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the hooks and patches."""
        self._handles.close()

    def backward_begins(self) -> None:
        """Change the optimizers, which are there by now."""
        if self._of_optimizers:
            optimizers = live_optimizers()
            for change in self._of_optimizers:
                self._change_optimizers(change, optimizers)
            self._of_optimizers.clear()

    def _change_optimizers(self, change: Change, optimizers: list[Optimizer]) -> None:
        if isinstance(change, StepInBackward):
            if len(optimizers) != len(change.optimizers):
                self._failed(GradInspectError("The program makes optimizers after its first backward call."))
            namespace: dict[str, Any] = {}
            exec(compile(stepping_code(), PLAN_FILE, "exec"), namespace)  # noqa: S102  # what is printed
            for optimizer in optimizers:
                namespace[STEP_IN_BACKWARD](optimizer)
            return
        is_fused = isinstance(change, Fused)
        for optimizer in filter(can_be_fused if is_fused else uses_foreach, optimizers):
            for group in optimizer.param_groups:
                group.update({"foreach": False, "fused": True} if is_fused else {"foreach": False})

    def _deletions(self) -> dict[str, list[tuple[Spot, str]]]:
        """List where variables are deleted, by file."""
        found: dict[str, list[tuple[Spot, str]]] = defaultdict(list)
        for change in self._plan.changes:
            if isinstance(change, DeleteVariable):
                file = str((self._base_folder / change.file).absolute())
                found[file].append((Spot(change.line, change.indent), change.name))
        return found

    def _module_called(self, module: nn.Module, _args: object) -> None:
        if not self.roots.is_entering:
            return
        self._called = module
        try:
            self._before_call()
            number = self.roots.entered(module)
            if number is not None:
                self._change(module, number, self._plan)
                self._attach_loss(module, number)
        finally:
            self._called = None

    def _release_after_steps(self, plan: Plan) -> None:
        if any(isinstance(change, ReleaseGradients) for change in plan.changes):
            self._handles.enter_context(optimizer_steps(after=_release, note=self._failed))

    def add(self, plan: Plan) -> None:
        """Change a program between two steps: modules, those that are still to be called, too, and optimizers.

        Where a plan frees gradients in the step that made them, those of the step before are freed now.
        """
        self._plan = Plan(changes=(*self._plan.changes, *plan.changes))
        if any(isinstance(change, ReleaseGradients | StepInBackward) for change in plan.changes):
            for optimizer in live_optimizers():
                _release(optimizer)
        self._release_after_steps(plan)
        self._of_optimizers += _of_optimizers(plan)
        for number, root in self.roots.alive():
            self._change(root, number, plan)

    def _change(self, root: nn.Module, number: int, plan: Plan) -> None:
        """Change modules of an outermost one that is about to run."""
        changes = [change for change in module_changes_of(plan) if change.root == number]
        if changes:
            code = compile(applied_code(changes, self._host), PLAN_FILE, "exec")
            with patched(*(() if self._second_runs is None else (self._second_runs.patch(root),))):
                exec(code, {ROOT: root})  # noqa: S102  # what is printed
            if root is self._called and any(not path for change in changes for path in change.paths):
                _run_changed(root)

    def _is_edited(self, frame: FrameType) -> bool:
        """Return whether a function makes the logits, by this line, and their loss: both are edited for all calls."""
        change = self._chunked
        if change is None or change.package_line:
            return False
        record = line_record(frame.f_code, line_at(frame), self._base_folder)
        own_lines = {f"{record.file}:{line}" for _, _, line in frame.f_code.co_lines()}
        return change.projection == f"{record.file}:{record.line}" and change.loss in own_lines

    def _attach_loss(self, root: nn.Module, number: int) -> None:
        if self._loss is not None and self._chunked is not None and self._chunked.root == number:
            self._loss.attach(root.get_submodule(self._chunked.path))

    def _failed(self, error: Exception) -> None:
        self.problem = self.problem or error


def _of_optimizers(plan: Plan) -> list[Change]:
    return [change for change in plan.changes if isinstance(change, StepInBackward | WithoutForeach | Fused)]


def _run_changed(sequence: nn.Module) -> None:
    """Let a call that has begun run what it was changed to. NOTE [A Sequential that has been called]."""
    members = vars(sequence)
    parts = members["_modules"]

    def run(given: Any) -> Any:
        members["_modules"] = parts
        return sequence.forward(given)

    members["_modules"] = {"": run}


@uncompiled
def _release(optimizer: Optimizer, _args: object = None, _kwargs: object = None) -> None:
    """Free the gradients that the optimizer has used."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
