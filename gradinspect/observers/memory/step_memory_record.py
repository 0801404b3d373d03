"""From the ledger of a run to its frozen record: names, modules and source lines are looked up here, and only here."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from msgspec.structs import replace

from gradinspect.analyses.memory.step import (
    KINDS,
    AliveRow,
    Collective,
    CurvePoint,
    DeviceMemory,
    DeviceSteps,
    LoneRank,
    Origin,
    Span,
    StepMemory,
    StepPeak,
    StorageKind,
)
from gradinspect.observers.memory.collective_log import Sent
from gradinspect.observers.memory.device_ledgers import DeviceLedgers, needed_bytes
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.observers.memory.storage_ledger import Allocation, Ledger, Purpose, StorageMaker
from gradinspect.recording.modules import CalledPaths
from gradinspect.recording.names.names import Names
from gradinspect.recording.recorder import Recorder
from gradinspect.runner.run import Run
from gradinspect.torch_api.devices.accelerators import has_expandable_segments
from gradinspect.torch_api.nodes import ACCUMULATE_GRAD_NR
from gradinspect.units import format_count

_ALONE = (
    "One rank was run, without the others: what they would send has its shape here, and no values. It is the "
    "arithmetic of the same code, not a measurement."
)


_AS_CUDA = (
    "All tensors are taken to be on one GPU, in blocks of CUDA's caching allocator; the operators are those of the "
    "CPU. What is allocated is needed in any case, what is reserved if no cached block is given back."
)


_EXPANDS = "Segments grow, as PYTORCH_ALLOC_CONF asks (expandable_segments)."


def record_step_memory(
    ledgers: DeviceLedgers, phases: StepPhases, run: Run, names: Names, sent_by_rank: Sequence[Sent] = ()
) -> StepMemory:
    """Make the record."""
    asked, job = ledgers.num_steps, run.request.job
    origins = _Origins(run, names)
    meant = ledgers.meant
    others = sorted(
        (ledger for ledger in ledgers.of_devices.values() if ledger is not meant and ledger.peak is not None),
        key=lambda ledger: (-needed_bytes(ledger), ledger.device),
    )
    first = _on_device(meant, origins)
    others_on = tuple(_on_device(ledger, origins) for ledger in others)
    sent = tuple(_collective(one, origins) for one in sent_by_rank)
    return StepMemory(
        source=run.request.label,
        torch_version=str(torch.__version__),
        is_real=not run.request.fake,
        asked=asked,
        **{field: getattr(first, field) for field in DeviceSteps.__struct_fields__},
        made_up=_made_up(phases, run),
        values_from="" if run.fake is None else run.fake.values_from,
        is_bound=run.fake is not None and run.fake.is_bound,
        notes=tuple(_notes(phases, run, min(phases.step, asked), ledgers)),
        place=None if job is None else LoneRank(rank=job.rank, world_size=job.world_size),
        collectives=sent,
        others=others_on,
        model_name=names.model_name,
        classes=origins.classes(),
    )


def _on_device(ledger: Ledger, origins: "_Origins") -> DeviceSteps:
    peak = ledger.peak
    steps = (
        StepPeak(
            number=step,
            peak_bytes=of_step.num_bytes,
            at=origins.moment(of_step.maker),
            end_bytes=ledger.end_bytes.get(step, ledger.num_bytes),
            backward_bytes=ledger.backward_bytes.get(step, 0),
        )
        for step, of_step in sorted(ledger.step_peaks.items())
        if 0 < step <= ledger.num_steps
    )
    return DeviceSteps(
        on=ledger.device,
        peak_bytes=0 if peak is None else peak.num_bytes,
        at=Origin(step=0, phase="setup") if peak is None else origins.moment(peak.maker),
        alive=_rows(ledger, origins),
        steps=tuple(steps),
        curve=tuple(
            CurvePoint(step=step, phase=phase, num_bytes=size, by_kind=_by_kind(sums))
            for step, phase, size, sums in ledger.curve.points(ledger.alive())
        ),
        spans=_spans(ledger, origins),
        device=_of_allocator(ledger),
    )


def _of_allocator(ledger: Ledger) -> DeviceMemory | None:
    """Return what the device's allocator gave out and reserved; None where it is unknown, or reserves nothing more."""
    if ledger.allocator is not None:
        return ledger.allocator.result()
    allocated = 0 if ledger.peak is None else ledger.peak.num_bytes
    if ledger.reserved_bytes <= allocated:
        return None
    return DeviceMemory(allocated_bytes=allocated, reserved_bytes=ledger.reserved_bytes)


def _collective(sent: Sent, origins: "_Origins") -> Collective:
    origin = origins.of(sent.maker)
    return Collective(
        step=origin.step,
        phase=origin.phase,
        op=sent.op,
        num_bytes=sent.num_bytes,
        group_size=sent.group_size,
        module=origin.module,
        line=origin.line,
        code=origin.code,
    )


def _by_kind(sums: Sequence[int]) -> dict[StorageKind, int]:
    return {kind: num_bytes for kind, num_bytes in zip(KINDS, sums, strict=True) if num_bytes}


def _spans(ledger: Ledger, origins: "_Origins") -> tuple[Span, ...]:
    """Join storages of one purpose and one origin that were alive at the same points."""
    groups: dict[tuple[Purpose, StorageMaker, int, int], list[Allocation]] = defaultdict(list)
    for allocation, first, last in ledger.curve.spans(ledger.alive()):
        groups[allocation.purpose, allocation.maker, first, last].append(allocation)
    spans = [
        Span(**_joined(purpose, maker, allocations, origins), first=first, last=last)
        for (purpose, maker, first, last), allocations in groups.items()
    ]
    return tuple(sorted(spans, key=lambda span: (-span.num_bytes, span.first, span.last, span.name)))


def _rows(ledger: Ledger, origins: "_Origins") -> tuple[AliveRow, ...]:
    """Join storages of one purpose and one origin."""
    groups: dict[tuple[Purpose, StorageMaker], list[Allocation]] = defaultdict(list)
    for allocation in ledger.alive_at_peak():
        groups[allocation.purpose, allocation.maker].append(allocation)
    rows = [
        AliveRow(**_joined(purpose, maker, allocations, origins)) for (purpose, maker), allocations in groups.items()
    ]
    return tuple(sorted((row for row in rows if row.num_bytes), key=lambda row: (-row.num_bytes, row.name)))


def _joined(
    purpose: Purpose, maker: StorageMaker, allocations: Sequence[Allocation], origins: "_Origins"
) -> dict[str, Any]:
    """Describe storages of one purpose and one origin as one."""
    return {
        "kind": purpose.kind,
        "name": purpose.name,
        "num_bytes": sum(allocation.num_bytes for allocation in allocations),
        "num_storages": len(allocations),
        "made": origins.of(maker, purpose.owner),
        "shape": purpose.shape,
    }


class _Origins:
    """Looks up who made what."""

    def __init__(self, run: Run, names: Names) -> None:
        self._recorder: Recorder = run.recorder
        self._base_folder = run.base_folder
        self._paths = CalledPaths(run.recorder, names)

    def moment(self, maker: StorageMaker) -> Origin:
        """Describe who made the last storage before a peak, with the program's line that called a library's."""
        origin, frames, frame = self.of(maker), self._recorder.frames, self._frame_of(maker)
        own = None if frame is None else frames.own_number(frame)
        if own is None or own == frame:
            return origin
        return replace(origin, called_at=frames.describe(own))

    def classes(self) -> dict[str, str]:
        """Return the classes of the modules that were named."""
        return self._paths.classes()

    def _frame_of(self, maker: StorageMaker) -> int | None:
        if maker.frame is None and maker.sequence_nr not in (None, ACCUMULATE_GRAD_NR):
            return self._recorder.frame_of(maker.sequence_nr)
        return maker.frame

    def of(self, maker: StorageMaker, owner: str | None = None) -> Origin:
        """Describe a maker; a parameter's gradient and state belong to the parameter's own module."""
        frame, call = self._frame_of(maker), maker.call
        if call is None and maker.sequence_nr not in (None, ACCUMULATE_GRAD_NR):
            call = self._recorder.call_of(maker.sequence_nr)
        if owner is None and call is not None:
            owner = self._paths.of(call)
        record = self._recorder.frames.record(frame, self._base_folder)
        return Origin(
            step=maker.step,
            phase=maker.phase,
            op=maker.op,
            node=maker.node.removeprefix("torch::autograd::"),
            module=owner or "",
            is_outermost=owner == "",
            is_compiled=maker.is_compiled,
            line="" if record is None else f"{record.file}:{record.line}",
            code="" if record is None else record.code,
        )


_NO_OPTIMIZER = "No optimizer has stepped: a step is one backward call, without an optimizer's state."
_NO_STEP = "No optimizer has stepped, although there is one: all backward calls count as one step, without its state."
_UNSEEN = (
    "An optimizer steps in code under torch.compile: such a step ends where that code returns, and what it needs while "
    "it runs is counted after backward, as temporary."
)
_NOT_COMPILED = (
    "torch.compile compiles nothing on fake tensors, so this is the step in eager: 'fit --real' measures the compiled "
    "one, and 'memory --compiled' says what it keeps under each activation_memory_budget."
)

_COMPILING = (
    "What torch.compile itself needs while it compiles is counted, too, as temporary memory of the first steps."
)


def _made_up(phases: StepPhases, run: Run) -> str:
    if not run.is_made_up:
        return ""
    loss = "the sum of its output" if run.request.loss is None else run.request.loss
    optimizer = "" if phases.num_optimizer_steps else ", without an optimizer and its state"
    return f"The step is made up: one call of '{run.request.label}', and backward of {loss}{optimizer}."


def _of_compiling(run: Run) -> list[str]:
    """Say what torch.compile did to the figures."""
    if not run.recorder.has_run_compiled:
        return []
    return [_COMPILING if run.fake is None else _NOT_COMPILED]


def _notes(phases: StepPhases, run: Run, number: int, ledgers: DeviceLedgers) -> list[str]:
    notes, asked = [], ledgers.num_asked
    if run.request.counts_as_cuda:
        notes.append(f"{_AS_CUDA} {_EXPANDS}" if has_expandable_segments() else _AS_CUDA)
    if run.request.job is not None:
        notes.append(_ALONE)
    notes += _of_compiling(run)
    if run.is_made_up:
        return [*notes, *(() if run.fake is None else run.fake.warnings[1:])]
    notes += [_UNSEEN] * bool(phases.num_unseen)
    if not phases.num_optimizer_steps:
        notes.append(_NO_STEP if phases.has_optimizer else _NO_OPTIMIZER)
    if number < asked:
        notes.append(f"The program made {format_count(number, 'step')}; {asked} were asked for.")
    elif number < ledgers.num_steps:
        times = f"{asked} times" if asked > 1 else "once"
        notes.append(
            f"The program made {format_count(number, 'step')}, in which not every optimizer stepped {times}: where the "
            "state of all is there, a step may need more."
        )
    elif asked == 1 and phases.num_optimizer_steps:
        notes.append("Optimizer state is made in step 1 and is there from the start of step 2, which was not watched.")
    return [*notes, *(() if run.fake is None else run.fake.warnings[1:])]
