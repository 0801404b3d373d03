"""The record of a run under a plan."""

from collections.abc import Iterator, Mapping
from typing import Final

from gradinspect.analyses.memory.step import AliveRow, StepMemory, StorageKind, bytes_by_kind, needed_bytes
from gradinspect.analyses.planning.changes import (
    Change,
    ChunkLoss,
    DeleteVariable,
    Fused,
    HeldVariable,
    ModuleUse,
    NamedPlace,
    Plan,
    ReleaseGradients,
    StepInBackward,
    WithoutForeach,
)
from gradinspect.analyses.planning.other_states import OtherState
from gradinspect.analyses.planning.search import PlanOutcome
from gradinspect.graph import Record

_MADE: Final[frozenset[StorageKind]] = frozenset(("saved", "recomputed", "temporary"))


class PlannedSteps(Record, frozen=True):
    """What steps need under a plan, and what else could be changed."""

    memory: StepMemory
    flops: int  # of matrix products, convolutions and attention, in all steps
    products: tuple[str, ...]  # the operators that took them
    roots: tuple[NamedPlace, ...]
    uses: tuple[ModuleUse, ...]
    release: ReleaseGradients | None = None
    stepping: StepInBackward | None = None
    without_foreach: WithoutForeach | None = None
    fused: Fused | None = None
    stepping_refused: str = ""  # why optimizers cannot step inside backward
    deletions: tuple[DeleteVariable, ...] = ()
    chunked: tuple[ChunkLoss, ...] = ()
    backward: tuple[str, str] = ("", "")  # line and code of a backward call
    held: tuple[HeldVariable, ...] = ()  # that cannot be deleted
    moved_bytes: int = 0  # to the CPU and back, in one step
    can_offload: bool = False  # the program has a device of its own
    other_states: tuple[OtherState, ...] = ()
    optimizer_names: tuple[str, ...] = ()  # of classes
    scratch: Mapping[str, int] = {}  # of kernels, for later runs
    second_run: str = ""  # of a checkpointed block: how it differed from the first one
    alternates: bool = False  # optimizers step after backward calls of their own

    @property
    def offers(self) -> tuple[Change, ...]:
        """What can be changed without computing anything again."""
        offers = self.release, self.without_foreach, *self.deletions, self.stepping
        return tuple(offer for offer in offers if offer is not None)


def outcome_of(plan: Plan, steps: PlannedSteps) -> PlanOutcome:
    """Keep what plans are compared by; what is held is that of the last step."""
    last = steps.memory.steps[-1] if steps.memory.steps else None
    return PlanOutcome(
        plan=plan,
        peak_bytes=needed_bytes(steps.memory),
        backward_bytes=0 if last is None else last.backward_bytes,
        flops=steps.flops,
        moved_bytes=steps.moved_bytes,
        at=steps.memory.at,
        model_name=steps.memory.model_name,
        alive=bytes_by_kind(steps.memory),
        largest=max(_made_in_a_step(steps.memory), key=lambda row: row.num_bytes, default=None),
        on=steps.memory.on,
        failure=steps.second_run,
    )


def _made_in_a_step(memory: StepMemory) -> Iterator[AliveRow]:
    """Yield what single operators have made that is there at the peak, apart from what lasts: parameters and state."""
    yield from (row for row in memory.alive if row.kind in _MADE and row.num_storages == 1 and row.made.op)
