"""The memory of whole training steps: the peak, what is alive at it, and how it got there.

What comes in: a frozen record of what was alive at the peak, row by row. What goes out: the same bytes by kind, by
module, by line, and what would have to go to stay below a limit.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from gradinspect.analyses.memory.rows import OUTSIDE
from gradinspect.analyses.selection.rows import ALL_ROWS, Fields, RowChoice, chosen_rows, sorted_rows
from gradinspect.analyses.structure.call_names import OUTERMOST, shown_path
from gradinspect.analyses.structure.name_folding import OddOne, alike, name_by_indices, named_odd_one
from gradinspect.graph import Record
from gradinspect.methods import Shown
from gradinspect.units import format_beside

StorageKind: TypeAlias = Literal[
    "parameter", "buffer", "gradient", "optimizer_state", "saved", "input", "recomputed", "temporary"
]
Phase: TypeAlias = Literal["setup", "forward", "backward", "after backward", "optimizer", "after step"]
By: TypeAlias = Literal["module", "line", "storage", "phase", "kind"]

# The first that a storage ever was is what it counts as.
KINDS: Final[tuple[StorageKind, ...]] = (
    "parameter", "buffer", "optimizer_state", "gradient", "saved", "input", "recomputed", "temporary"
)  # fmt: skip
KIND_NAMES: Final[dict[StorageKind, str]] = {
    "parameter": "parameters",
    "buffer": "buffers",
    "optimizer_state": "optimizer state",
    "gradient": "gradients",
    "saved": "saved for backward",
    "input": "inputs and variables",
    "recomputed": "recomputed",
    "temporary": "temporary",
}
_BUFFERS_OF_RANKS: Final = "what the backend of the process group keeps for itself"
SCRATCH: Final = (
    "scratch memory inside kernels other than convolutions, recurrent layers, matrix products and attention"
)
FRAGMENTS: Final = "the allocator's rounding and fragmentation"
NOT_COUNTED: Final = (FRAGMENTS, "the CUDA context", "buffers of NCCL")
NOT_COUNTED_ON_CUDA: Final = (
    "the CUDA context", "workspaces of cuBLAS and cuDNN", "buffers of NCCL", "memory that other processes use",
    "what CUDA kernels keep or need otherwise than those of the CPU",
)  # fmt: skip
NOT_COUNTED_ON_A_DEVICE: Final = (
    "the device's context", "buffers of NCCL", "memory that other processes use",
)  # fmt: skip
CPU: Final = "cpu"
PINNED: Final = "pinned"  # memory of the host that is page-locked: the allocator of the CPU does not have it
MAX_MODULES = 12
IN_COMPILED: Final = "(compiled functions)"


class Origin(Record, frozen=True):
    """Who made a storage, and when."""

    step: int  # 1: the first one; 0: before it
    phase: Phase
    op: str = ""  # "aten.addmm"
    node: str = ""  # the backward node that ran: "AddmmBackward0"
    module: str = ""  # "encoder.0.linear"
    line: str = ""  # "train.py:22"
    code: str = ""
    called_at: str = ""  # of the moment of a peak, in an installed package: "train.py:9  x = rearrange(x)"
    is_outermost: bool = False  # the module is the one whose path is ""
    is_compiled: bool = False  # in a function under torch.compile, where modules are not followed


class AliveRow(Record, frozen=True, kw_only=True):
    """Storages of one kind and one origin that were alive together."""

    kind: StorageKind
    name: str  # "encoder.0.weight", also of its gradient; "" of what has none
    num_bytes: int
    num_storages: int
    made: Origin
    shape: str = ""  # of one that ranks share: of all together, and what this rank has


class StepPeak(Record, frozen=True):
    """What one step needed."""

    number: int
    peak_bytes: int
    at: Origin
    end_bytes: int  # alive when the step had ended
    backward_bytes: int = 0  # alive when its backward began: also weights, gradients and the state of optimizers


class CurvePoint(Record, frozen=True):
    """The most that was alive in a short time."""

    step: int
    phase: Phase
    num_bytes: int
    by_kind: dict[StorageKind, int]  # adds up to it; kinds that are not there are left out


class Span(AliveRow, frozen=True, kw_only=True):
    """Storages of one kind and one origin, and the points of the curve from which to which they were alive."""

    first: int
    last: int


class Collective(Record, frozen=True):
    """Something that a rank sends to others, or gets from them."""

    step: int  # 0: before the first
    phase: Phase
    op: str  # "all_reduce"
    num_bytes: int  # of the whole tensor, after gathering or before scattering
    group_size: int  # ranks that take part
    module: str = ""
    line: str = ""
    code: str = ""


class LoneRank(Record, frozen=True):
    """One rank of a job, which was run without the others."""

    rank: int
    world_size: int


class DeviceMemory(Record, frozen=True):
    """The most that a device's allocator gave out, and reserved; or what CUDA's would have, for the same storages."""

    allocated_bytes: int
    reserved_bytes: int


class DeviceSteps(Record, frozen=True):
    """What was alive on one more device."""

    on: str  # "cuda:1", "cpu", "pinned"
    peak_bytes: int
    at: Origin
    alive: tuple[AliveRow, ...]  # their bytes add up to the peak
    steps: tuple[StepPeak, ...]
    curve: tuple[CurvePoint, ...]
    spans: tuple[Span, ...] = ()
    device: DeviceMemory | None = None


class StepMemory(Shown, Record, frozen=True):
    """What was alive, from the start of a program to the end of its last step that was watched.

    All figures are those of one device: of the fullest accelerator, or of the CPU where none is used.
    """

    source: str
    torch_version: str
    is_real: bool
    asked: int  # steps
    peak_bytes: int
    at: Origin
    alive: tuple[AliveRow, ...]  # their bytes add up to the peak
    steps: tuple[StepPeak, ...]
    curve: tuple[CurvePoint, ...]
    made_up: str = ""  # what the step is, if the program makes none
    values_from: str = ""  # where values come from that were read on fake tensors; "": none were needed
    is_bound: bool = False  # sizes that depend on values were taken to be the largest possible
    is_least: bool = False  # some storages were not counted, whose sizes nothing says, as those of sparse tensors
    notes: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()  # of the largest storages
    device: DeviceMemory | None = None  # None: only storages were counted
    place: LoneRank | None = None  # None: the whole program, or one of ranks that all ran
    collectives: tuple[Collective, ...] = ()  # of a rank that was run alone, in order
    on: str = ""  # the device: "cuda:0"; "" in files of earlier releases, which added all devices up
    others: tuple[DeviceSteps, ...] = ()  # the other devices, the fullest first
    model_name: str = OUTERMOST  # the program's variable with the module whose path is ""
    classes: dict[str, str] = msgspec.field(default_factory=dict)  # of modules that were called, by their paths

    @property
    def not_counted(self) -> tuple[str, ...]:
        """What a process needs besides."""
        of_ranks = () if self.place is None else (_BUFFERS_OF_RANKS,)
        if self.is_real and is_accelerator(self.on):
            return NOT_COUNTED_ON_A_DEVICE
        if self.device is not None:
            return (*NOT_COUNTED_ON_CUDA, *of_ranks)
        return NOT_COUNTED if self.is_real else (SCRATCH, *NOT_COUNTED, *of_ranks)


def is_accelerator(device: str) -> bool:
    """Return whether a device has memory of its own; False for "", which stands for none."""
    return device not in ("", CPU, PINNED)


def device_name(device: str) -> str:
    """Write which memory it is."""
    return "pinned memory of the host" if device == PINNED else device


def by_device(memory: StepMemory) -> tuple[StepMemory, ...]:
    """Show the same steps on each device by itself, the device that is meant first."""
    own = {field: getattr(memory, field) for field in DeviceSteps.__struct_fields__}
    others = ({field: getattr(other, field) for field in own} for other in memory.others)
    return tuple(replace(memory, others=(), **fields) for fields in (own, *others))


def is_meant(memory: StepMemory, one: StepMemory) -> bool:
    """Return whether a limit is meant for a device: for each accelerator, or for the CPU where none is used."""
    return one.on == memory.on or is_accelerator(one.on)


def on_device(memory: StepMemory) -> str:
    """Name the device where there are several: `" on cuda:1"`; else ""."""
    return f" on {memory.on}" if memory.others or is_accelerator(memory.on) else ""


def peak_of(memory: StepMemory, limit: int | None) -> str:
    """Write the peak, and how it is known: `at least 3.1 MiB on cuda:1 (predicted)`."""
    least = "at least " if memory.is_least else ""
    how = "measured" if memory.is_real else "predicted"
    return f"{least}{format_beside(memory.peak_bytes, limit)}{on_device(memory)} ({how})"


def peak_place(memory: StepMemory) -> int | None:
    """Return the point of the curve with the most bytes; None if it has no points."""
    return max(range(len(memory.curve)), key=lambda place: memory.curve[place].num_bytes, default=None)


class PeakGroup(Record, frozen=True):
    """Some of what is alive at the peak."""

    label: str
    num_bytes: int
    num_storages: int
    detail: str = ""
    class_name: str = ""  # of a module that was called


Words: TypeAlias = tuple[str, str, str]  # label, detail, class
FoldedGroup: TypeAlias = tuple[PeakGroup, tuple[PeakGroup, ...]]


def needed_bytes(memory: StepMemory) -> int:
    """Return what a device must have: all that is reserved, where its allocator is known."""
    return memory.peak_bytes if memory.device is None else memory.device.reserved_bytes


def fits(memory: StepMemory, limit: int | None) -> bool | None:
    """Return whether the device that is meant surely has room; None without a limit."""
    return None if limit is None else needed_bytes(memory) <= limit and not memory.is_least


def bytes_by_kind(memory: StepMemory) -> dict[StorageKind, int]:
    """Sum what is alive at the peak; kinds that are not there are left out."""
    sums = {kind: sum(row.num_bytes for row in memory.alive if row.kind == kind) for kind in KINDS}
    return {kind: num_bytes for kind, num_bytes in sums.items() if num_bytes}


ALIVE_FIELDS: Final[Fields[AliveRow]] = {
    "bytes": lambda row: (row.num_bytes,),
    "class": lambda row: (row.made.node, row.made.op),
    "kind": lambda row: (row.kind, KIND_NAMES[row.kind]),
    "line": lambda row: (row.made.line,),
    "module": lambda row: _names(row.made.module, OUTERMOST),
    "name": lambda row: (row.name,),
    "phase": lambda row: (row.made.phase,),
}
GROUP_FIELDS: Final[Fields[PeakGroup]] = {
    "bytes": lambda group: (group.num_bytes,),
    "name": lambda group: (group.label,),
}


def chosen_alive(memory: StepMemory, choice: RowChoice) -> tuple[AliveRow, ...]:
    """Keep what --module and --where choose of what is alive at the peak.

    Raises:
        GradInspectError: The options name something that is not there.
    """

    def names(row: AliveRow) -> tuple[str, ...]:
        return _names(row.made.module, memory.model_name)

    modules = {name for row in memory.alive for name in names(row)}
    modules |= {name for other in memory.others for row in other.alive for name in names(row)}
    return chosen_rows(memory.alive, {**ALIVE_FIELDS, "module": names}, replace(choice, sort=None), modules)


def groups_by(memory: StepMemory, by: By, choice: RowChoice = ALL_ROWS) -> tuple[PeakGroup, ...]:
    """Group what is alive at the peak, the largest first. All together, their bytes add up to the peak.

    Raises:
        GradInspectError: The options name something that is not there.
    """
    groups = _grouped(chosen_alive(memory, choice), _key(memory, by))
    return sorted_rows(groups, GROUP_FIELDS, choice.sort)


def odd_group(same: Sequence[PeakGroup]) -> OddOne | None:
    """Name the one of equal blocks that has far more or less than the others."""
    return named_odd_one([group.label for group in same], [group.num_bytes for group in same])


def folded_groups(memory: StepMemory, by: By, choice: RowChoice = ALL_ROWS) -> list[FoldedGroup]:
    """Group what is alive at the peak, and equal blocks as one; modules are told apart as deep as rows are few enough.

    Nothing is folded where rows are sorted or counted.

    Returns:
        Groups, the largest first, each with those it stands for: `net.0-5` with six.
    """
    if by not in {"module", "storage"} or choice.top is not None or choice.sort is not None:
        return [(group, (group,)) for group in groups_by(memory, by, choice)]
    rows = chosen_alive(memory, choice)
    if by != "module":
        return _folded(_grouped(rows, _key(memory, by)), lambda group: (group.num_bytes, group.num_storages))
    depth = _module_depth(memory)
    found = _folded_modules(memory, rows, depth)
    most = max(len(found), MAX_MODULES // 2)
    while depth < max((row.made.module.count(".") + 1 for row in rows), default=1):
        depth += 1
        deeper = _folded_modules(memory, rows, depth)
        if len(deeper) > most:
            break
        found = deeper
    return found


def _folded_modules(memory: StepMemory, rows: Sequence[AliveRow], depth: int) -> list[FoldedGroup]:
    """Fold modules of one class whose parameters have the same names; without any, those with the same bytes."""
    model = memory.model_name
    parameters: dict[str, dict[str, int]] = {}
    for row in rows:
        label = _outer(row.made, depth, model)
        if row.kind in {"parameter", "buffer"}:
            path = _cut(row.made.module, depth)  # the label of `0.up` is `model.0.up`
            parameters.setdefault(label, {})[row.name.rpartition(f"{path}.")[2]] = row.num_bytes

    def look(group: PeakGroup) -> tuple[object, ...]:
        own = parameters.get(group.label)
        if own is None:
            return (group.num_bytes, group.num_storages)
        return (frozenset(own), len(set(own.values())))  # the weight of a norm is as large as its bias

    return _folded(_grouped(rows, _module_key(memory, depth)), look)


def _folded(groups: Sequence[PeakGroup], look: Callable[[PeakGroup], Hashable]) -> list[FoldedGroup]:
    """Fold groups that look the same."""
    folded: list[FoldedGroup] = []
    for same in alike(
        groups, lambda group: (group.label,), lambda group: (group.detail, group.class_name, look(group))
    ):
        together = replace(
            same[0],
            label=name_by_indices(group.label for group in same),
            num_bytes=sum(group.num_bytes for group in same),
            num_storages=sum(group.num_storages for group in same),
        )
        folded.append((together, tuple(same)))
    return sorted(folded, key=lambda pair: -pair[0].num_bytes)


def _key(memory: StepMemory, by: By) -> Callable[[AliveRow], Words]:
    match by:
        case "kind":
            return lambda row: (KIND_NAMES[row.kind], "", "")
        case "module":
            return _module_key(memory, _module_depth(memory))
        case "line":
            return lambda row: (row.made.line or "(no line)", row.made.code, "")
        case "phase":
            return lambda row: (moment_name(row.made), "", "")
        case "storage":
            return lambda row: (_storage_name(row), "" if row.shape else row.made.line, "")  # both would be too long


def _module_key(memory: StepMemory, depth: int) -> Callable[[AliveRow], Words]:
    def key(row: AliveRow) -> Words:
        return _outer(row.made, depth, memory.model_name), "", memory.classes.get(_cut(row.made.module, depth), "")

    return key


def to_make_room(memory: StepMemory, limit: int) -> tuple[PeakGroup, ...]:
    """Name the largest groups of storages that together are at least as large as what is too much."""
    excess = memory.peak_bytes - limit
    named: list[PeakGroup] = []
    for group in _grouped(memory.alive, lambda row: (_place(row, memory.model_name), KIND_NAMES[row.kind], "")):
        if excess <= 0:
            break
        named.append(group)
        excess -= group.num_bytes
    return tuple(named)


def folded_room(memory: StepMemory, limit: int) -> list[FoldedGroup]:
    """Fold what would have to go: the same kind in equal blocks as one."""
    return _folded(to_make_room(memory, limit), lambda _: None)


def moment_name(origin: "Origin | CurvePoint") -> str:
    """Write when something happened: `backward of step 2`."""
    match origin.phase:
        case "setup":
            return "before the first step"
        case "optimizer":
            return f"optimizer step of step {origin.step}"
        case "after backward":
            return f"after backward in step {origin.step}"
        case "after step":
            return f"after the optimizer step of step {origin.step}"
        case _:
            return f"{origin.phase} of step {origin.step}"


def phase_name(phase: Phase) -> str:
    """Write when in a step something happened: `in backward`, `in the optimizer step`."""
    match phase:
        case "setup":
            return "before the first step"
        case "optimizer":
            return "in the optimizer step"
        case "after backward":
            return "after backward"
        case "after step":
            return "after the optimizer step"
        case _:
            return f"in {phase}"


def _names(path: str, model: str) -> tuple[str, ...]:
    """Return the path of a module and what is shown of it, "model.3" for "3"; nothing outside of modules."""
    return tuple(dict.fromkeys((path, shown_path(path, model)))) if path else ()


def _grouped(rows: Iterable[AliveRow], key: Callable[[AliveRow], Words]) -> tuple[PeakGroup, ...]:
    groups: dict[Words, PeakGroup] = {}
    for row in rows:
        words = label, detail, class_name = key(row)
        none = PeakGroup(label=label, num_bytes=0, num_storages=0, detail=detail, class_name=class_name)
        before = groups.get(words, none)
        groups[words] = replace(
            before,
            num_bytes=before.num_bytes + row.num_bytes,
            num_storages=before.num_storages + row.num_storages,
        )
    return tuple(sorted(groups.values(), key=lambda group: (-group.num_bytes, group.label, group.detail)))


def _module_depth(memory: StepMemory) -> int:
    """Choose how deep modules are told apart: as deep as leaves few enough of them."""
    deepest = max((row.made.module.count(".") + 1 for row in memory.alive), default=1)
    depths = range(1, deepest + 1)
    labels = ({_outer(row.made, depth, OUTERMOST) for row in memory.alive} for depth in depths)
    fitting = [depth for depth, found in zip(depths, labels, strict=True) if len(found) <= MAX_MODULES]
    return max(fitting, default=1)


def _outer(made: Origin, depth: int, model: str) -> str:
    if not made.module:
        itself = f"({OUTERMOST if model == 'self' else model} itself)"  # a method of the model trains it
        return itself if made.is_outermost else IN_COMPILED if made.is_compiled else OUTSIDE
    return shown_path(_cut(made.module, depth), model)


def _cut(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth])


def _storage_name(row: AliveRow) -> str:
    if row.name:
        name = f"{row.name} {row.shape}".rstrip()
        return f"{name} ({row.kind.replace('_', ' ')})" if row.kind != "parameter" else name
    made_by = row.made.node or row.made.op or "unknown operator"
    return f"{made_by} ({row.kind})"


def _place(row: AliveRow, model: str) -> str:
    return (
        (row.made.module and shown_path(row.made.module, model)) or row.name or row.made.line or row.made.op or OUTSIDE
    )
