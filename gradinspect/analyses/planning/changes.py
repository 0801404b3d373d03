"""What a plan changes in a program."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple, TypeAlias

from msgspec.structs import replace

from gradinspect.analyses.structure.call_names import INDEX, without_wrappers
from gradinspect.analyses.structure.name_folding import name_by_indices, pattern_of
from gradinspect.graph import Record
from gradinspect.units import format_ordinal, parse_whole


def names_shown(prefix: str, paths: Iterable[str]) -> str:
    """Name modules of one outermost module as screens do: its prefix, and no part that torch.compile has added."""
    return f"{prefix}{name_by_indices(map(without_wrappers, paths))}"


class SequencePart(Record, frozen=True):
    """A module of a Sequential."""

    saved_bytes: int
    writes_input: bool = False


class ModuleUse(Record, frozen=True):
    """A module that ran in the forward of the last step, under an outermost module that was called."""

    root: int  # number of the outermost module, in the order in which they were called
    path: str  # as get_submodule takes it
    class_name: str
    saved_bytes: int  # of what its forward made and backward holds, submodules included
    has_parts: bool = False  # submodules
    keeps_statistics: bool = False  # batch norms inside it update running statistics
    writes_input: bool = False  # so that it cannot be computed again from what it was given
    unrepeatable: str = ""  # why it gives something else when it runs again: "draws from Python's random"
    is_compiled: bool = False  # it runs inside of code under torch.compile, whose graph hooks of saved tensors break
    parts: tuple[SequencePart, ...] = ()  # of a Sequential, in the order in which they run
    prefix: str = ""  # of its path on screens: "net." before "2"; NOTE [One spelling of a name]


class NamedPlace(Record, frozen=True):
    """An outermost module that was called, or an optimizer: what the program calls it, and where code can change it."""

    name: str  # "model", "self.net"
    after: str = ""  # the line after which it is there, and unchanged until it is called: "train.py:12"
    code: str = ""
    indent: int = 0  # of what follows it


class Edit(NamedTuple):
    """A line of the program to change by hand, and how."""

    place: str  # "train.py:12"; "": it is not known
    code: str  # of the line; "" with a place that says all
    what: str  # "write del logits"

    def __str__(self) -> str:
        """Write it as one sentence: `at train.py:12, logits = head(x): write del logits after it`."""
        line = ", ".join(filter(None, (self.place, self.code)))
        return f"at {line}: {self.what}" if line else self.what


class _Change(Record, frozen=True):
    """One change of a program. What a kind of change does beside its code is declared with it."""

    rounding: ClassVar[int] = 0  # of gradients: 0 as before, 1 otherwise, 2 in half precision, 3 outputs, too
    kind_name: ClassVar[str]  # in the plural, in the list of what was tried

    def describe(self, times: str) -> str:
        """Say what it changes, with this sign before a number of modules."""
        raise NotImplementedError

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which lines to edit; nothing if code is pasted instead."""
        return ()


class _OnBlock(_Change, frozen=True):
    """A change to some modules of a repeated block."""

    root: int
    paths: tuple[str, ...]
    class_name: str
    num_alike: int  # modules of the repeated block
    prefix: str = ""  # of their paths on screens

    def modules(self, times: str) -> str:
        """Name the modules that are changed, and say how many of the block they are: `h.0-2 Block x3 of 5`."""
        number = len(self.paths)
        of = f" of {self.num_alike}" if number != self.num_alike else ""
        count = f" {times}{number}{of}" if self.num_alike > 1 else ""
        return f"{names_shown(self.prefix, self.paths)} {self.class_name}{count}"


class Checkpoint(_OnBlock, frozen=True, tag="checkpoint"):
    """Some modules compute their forward again in backward, so that what they save need not be held."""

    kind_name: ClassVar[str] = "checkpoints"
    kept: tuple[str, ...] = ()  # operators whose results are held all the same: "aten.mm.default"
    keeps_statistics: bool = False

    def describe(self, times: str) -> str:
        """Say what it changes."""
        kept = ", keeping matrix products, convolutions and attention" if self.kept else ""
        return f"checkpoint {self.modules(times)}{kept}"


class CheckpointSegments(_Change, frozen=True, tag="checkpoint segments"):
    """All segments of a Sequential but the last one compute their forward again in backward."""

    kind_name: ClassVar[str] = "checkpoints of segments"
    root: int
    path: str  # of the Sequential; "": it is the outermost module
    class_name: str
    starts: tuple[int, ...]  # the first module of each segment
    keeps_statistics: bool = False
    prefix: str = ""  # of its path on screens

    @property
    def paths(self) -> tuple[str, ...]:
        """The module that is changed."""
        return (self.path,)

    def describe(self, times: str) -> str:  # noqa: ARG002  # it is one module
        """Say what it changes."""
        name = names_shown(self.prefix, self.paths).removesuffix(".")
        what = " ".join(filter(None, (name, self.class_name)))
        return f"checkpoint {what} in {len(self.starts)} segments, all but the last"


class Offload(_OnBlock, frozen=True, tag="offload"):
    """What the forward of some modules saves is moved to the CPU, and back in backward."""

    kind_name: ClassVar[str] = "offloads"

    def describe(self, times: str) -> str:
        """Say what it changes."""
        return f"offload what {self.modules(times)} saves to the CPU"


class HalfSaves(_OnBlock, frozen=True, tag="half saves"):
    """What the forward of some modules saves in float32 is held as bfloat16."""

    kind_name: ClassVar[str] = "bfloat16 saves"
    rounding: ClassVar[int] = 2

    def describe(self, times: str) -> str:
        """Say what it changes."""
        return f"hold what {self.modules(times)} saves as bfloat16"


class Autocast(_OnBlock, frozen=True, tag="autocast"):
    """The forward of some modules runs under autocast: products are made of, and saved as, bfloat16."""

    kind_name: ClassVar[str] = "autocast"
    rounding: ClassVar[int] = 3

    def describe(self, times: str) -> str:
        """Say what it changes."""
        return f"run {self.modules(times)} under autocast to bfloat16"


class ReleaseGradients(_Change, frozen=True, tag="release gradients"):
    """Gradients are freed as soon as the optimizer has used them."""

    kind_name: ClassVar[str] = "gradients freed earlier"
    line: str  # where the program clears them: "train.py:30"
    code: str

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return "free gradients right after the optimizer's step"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which lines to edit."""
        cleared = next((part.strip() for part in self.code.split(";") if "zero_grad" in part), self.code)
        return (Edit(self.line, "", f"remove {cleared}, and write zero_grad() right after the optimizer's step()"),)


class _OnOptimizers(_Change, frozen=True):
    """A change to some optimizers."""

    optimizers: tuple[NamedPlace, ...]

    @property
    def names(self) -> str:
        """What the program calls them."""
        return " and ".join(optimizer.name for optimizer in self.optimizers)

    def written(self, option: str) -> tuple[Edit, ...]:
        """Say where to write an option."""
        return tuple(
            Edit(one.after, one.code, f"write {option}")
            if one.after
            else Edit("", "", f"where {one.name} is made: write {option}")
            for one in self.optimizers
        )


class StepInBackward(_OnOptimizers, frozen=True, tag="step in backward"):
    """Optimizers use each gradient as soon as it is there, and free it: gradients are never there together."""

    kind_name: ClassVar[str] = "steps inside backward"

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return f"step {self.names} inside backward, parameter by parameter"


class WithoutForeach(_OnOptimizers, frozen=True, tag="without foreach"):
    """Optimizers update one parameter after the other: temporary tensors of all are not there together."""

    kind_name: ClassVar[str] = "foreach=False"

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return f"step {self.names} with foreach=False"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which lines to edit."""
        return self.written("foreach=False")


class Fused(_OnOptimizers, frozen=True, tag="fused"):
    """Optimizers update a parameter in one kernel, without temporary tensors, which rounds otherwise."""

    kind_name: ClassVar[str] = "fused=True"
    rounding: ClassVar[int] = 1

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return f"step {self.names} with fused=True"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which lines to edit."""
        return self.written("fused=True, without foreach")


class DeleteVariable(_Change, frozen=True, tag="delete variable"):
    """A variable that holds memory for nothing is deleted after its last use."""

    kind_name: ClassVar[str] = "deletions"
    name: str
    file: str  # relative to the program's folder
    line: int  # the last one of the statement after which it is deleted
    indent: int
    code: str  # of the line
    num_bytes: int  # that it holds at the peak

    @property
    def place(self) -> str:
        """Where it is deleted."""
        return f"{self.file}:{self.line}"

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return f"del {self.name} after {self.place}"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which line to edit."""
        return (Edit(self.place, self.code, f"write del {self.name} after it"),)


class ChunkLoss(_Change, frozen=True, tag="chunk loss"):
    """The loss is computed from the projection's input, in chunks, so that all logits are never there at once."""

    kind_name: ClassVar[str] = "chunked loss"
    root: int
    path: str  # of the projection
    chunks: int
    projection: str  # its line: "model.py:46"
    loss: str
    loss_code: str
    package_line: str = ""  # inside that line, where an installed package computes the loss
    is_converted: bool = False  # the program converts the logits to another dtype
    prefix: str = ""  # of its path on screens
    rounding: ClassVar[int] = 1

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        return f"compute the cross-entropy of {self._shown} in {self.chunks} chunks"

    @property
    def _shown(self) -> str:
        return names_shown(self.prefix, (self.path,))

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which line to edit."""
        within = f" (there {self.package_line} computes it)" if self.package_line else ""
        call = (
            f"give what {self._shown} is given at {self.projection} to chunked_cross_entropy below, "
            f"with chunks={self.chunks}; the logits are not made"
            + (", so convert inside head, as the program does" if self.is_converted else "")
        )
        return (Edit(self.loss, f"{self.loss_code}{within}", call),)


class SplitBatch(_Change, frozen=True, tag="split batch"):
    """Gradients of smaller batches are added up before the optimizer steps."""

    kind_name: ClassVar[str] = "smaller batches"
    name: str  # of the size
    size: int  # of the whole batch
    parts: int
    backward: str  # its line: "train.py:30"
    code: str
    keeps_statistics: bool = False  # batch norms see the small batches
    rounding: ClassVar[int] = 1

    @property
    def part_size(self) -> int:
        """Of a small batch."""
        return self.size // self.parts

    def describe(self, times: str) -> str:  # noqa: ARG002  # it names no modules
        """Say what it changes."""
        norms = ", which changes the statistics of batch norms" if self.keeps_statistics else ""
        return f"{self.parts} batches of {self.name} {self.part_size} for each step{norms}"

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Say which lines to edit."""
        nth = format_ordinal(self.parts)
        return (
            Edit("", "", f"set {self.name} to {self.part_size} instead of {self.size}"),
            Edit(self.backward, self.code, f"divide by {self.parts} what backward starts from"),
            Edit(
                "",
                "",
                f"of each optimizer, and of a scheduler that steps with it, make only every {nth} call of step()",
            ),
            Edit(
                "",
                "",
                "call zero_grad(), of optimizers and models, right after the last of these step() and nowhere else",
            ),
        )


class HeldVariable(Record, frozen=True):
    """A variable that holds memory of earlier steps at the peak, and is still read later."""

    name: str
    place: str  # a line that runs while it is held: "train.py:30"
    num_bytes: int  # at the peak
    num_storages: int


ModuleChange: TypeAlias = Checkpoint | CheckpointSegments | Offload | HalfSaves | Autocast
OptimizerChange: TypeAlias = ReleaseGradients | StepInBackward | WithoutForeach | Fused
Change: TypeAlias = ModuleChange | OptimizerChange | DeleteVariable | ChunkLoss | SplitBatch


class Plan(Record, frozen=True):
    """Changes that are made together."""

    changes: tuple[Change, ...] = ()

    @property
    def num_changes(self) -> int:
        """How many modules it changes, and what else."""
        modules = module_changes_of(self)
        return len(self.changes) - len(modules) + sum(len(change.paths) for change in modules)


NO_CHANGE = Plan()


def module_changes_of(plan: Plan) -> list[ModuleChange]:
    """List the changes to modules."""
    return [change for change in plan.changes if isinstance(change, ModuleChange)]


def stepping_of(plan: Plan) -> StepInBackward | None:
    """Return how optimizers step inside backward."""
    return next((change for change in plan.changes if isinstance(change, StepInBackward)), None)


def split_of(plan: Plan) -> SplitBatch | None:
    """Return how it splits the batch."""
    return next((change for change in plan.changes if isinstance(change, SplitBatch)), None)


def is_exact(plan: Plan) -> bool:
    """Return whether gradients stay what they are to the last bit, where kernels compute the same twice."""
    return not rounding_of(plan)


def rounding_of(plan: Plan) -> int:
    """Return how gradients are rounded: 0 as before, 1 otherwise, 2 in half precision, 3 outputs, too."""
    return max((change.rounding for change in plan.changes), default=0)


def describe_plan(plan: Plan, times: str = "x") -> str:
    """Say what it changes, with this sign before a number of modules."""
    return "; ".join(descriptions_of(plan, times)) or "no change"


def descriptions_of(plan: Plan, times: str = "x") -> list[str]:
    """Say what it changes, one by one."""
    return [change.describe(times) for change in _together(plan.changes)]


def _together(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the same change of modules that differ in an index, `h.0.mlp` and `h.1-11.mlp`, as one."""
    groups: dict[object, list[Change]] = {}
    for change in changes:
        key: object = change
        if isinstance(change, _OnBlock):
            key = (frozenset(map(pattern_of, change.paths)), replace(change, paths=(), num_alike=0))
        groups.setdefault(key, []).append(change)
    for first, *others in groups.values():
        if not isinstance(first, _OnBlock):
            yield first
            continue
        same = [first, *(other for other in others if isinstance(other, _OnBlock))]
        paths = tuple(dict.fromkeys(path for change in same for path in change.paths))
        yield replace(first, paths=paths, num_alike=max(len(paths), *(change.num_alike for change in same), 0))


def edits_of(plan: Plan) -> list[Edit]:
    """Say which lines to edit."""
    return [edit for change in plan.changes for edit in change.edits]


class Counted(NamedTuple):
    """Paths that differ in one number, which counts up."""

    before: str
    first: int
    last: int
    after: str


def counted_paths(paths: tuple[str, ...]) -> Counted | None:
    """Split paths that differ in one number, which counts up; None if they do not."""
    for found in INDEX.finditer(paths[0]):
        before, after, first = paths[0][: found.start()], paths[0][found.end() :], parse_whole(found[0])
        if first is not None and paths == tuple(f"{before}{first + n}{after}" for n in range(len(paths))):
            return Counted(before, first, first + len(paths) - 1, after)
    return None
