"""Judge whether a compiled step computes what eager does.

NOTE [Rounding, measured]
Compiled code adds in another order and skips roundings in between, so values differ. By how much is measured: eager
runs a second time, and each result of an operator is moved by up to one unit in its last place. What a loss or a
gradient is off by then is what rounding does to it in this program, cancellation included. Compiled code may be off by
`FACTOR` times that. Over correct programs it is off by less than twice: `benchmarks/compiled.py` prints it.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

from gradinspect.analyses.structure.name_folding import alike, name_by_indices
from gradinspect.graph import Frame, Record
from gradinspect.request import CompiledRegion
from gradinspect.units import format_count

FACTOR: Final = 6.0
BY_CHANCE: Final = 4.0  # a single value may be off by as many times more: roundings may cancel in it
UNITS: Final = 64.0  # in the last place, of its norm, that any value may be off by
NOISY: Final = 0.1  # part of its norm: what rounding moves by so much cannot be compared
STAGES: Final = ("eager", "aot_eager", "aot_eager_decomp_partition")  # backends, each with one step more
STAGE_WORDS: Final = {
    "eager": "TorchDynamo, which captures the graph",
    "aot_eager": "AOTAutograd, which makes the backward graph",
    "aot_eager_decomp_partition": "the decompositions of operators, or the partitioner",
}
UNCUT: Final = "aot_eager_default_partitioner"  # `aot_eager`, without the partitioner that computes things again
_PARTITIONER = "the partitioner of AOTAutograd, which decides what backward computes again"

# tensor: any other one that was written into; memory: of two tensors
Role: TypeAlias = Literal["loss", "gradient", "buffer", "tensor", "memory"]


class ComparedCall(Record, frozen=True):
    """A backward call of both runs."""

    name: str  # "backward #1"
    frame: Frame | None = None  # of the compiled run

    @property
    def words(self) -> str:
        """Name it with its line: "backward #1 at train.py:20"."""
        return self.name if self.frame is None else f"{self.name} at {self.frame.file}:{self.frame.line}"


class ValueKey(NamedTuple):
    """Which value it is, in every run of a program."""

    call: int  # of backward; from 0
    role: Role
    name: str


class StepValue(Record, frozen=True):
    """A value after a backward call, beside that of the eager run."""

    call: int
    role: Role
    name: str
    dtype: str
    shape: tuple[int, ...]
    norm: float  # of the eager one; of its own in the eager run
    error: float = 0.0  # the norm of what it is off by
    num_odd: int = 0  # elements that are NaN or Inf in one of them only
    problem: str = ""  # what keeps it from being the eager one: "another shape"
    unread: str = ""  # why nobody can say: "on the meta device, which has no values"

    @property
    def key(self) -> ValueKey:
        """Which value it is."""
        return ValueKey(self.call, self.role, self.name)

    @property
    def relative(self) -> float:
        """How far it is off, as a part of its norm."""
        if not self.error:
            return 0.0
        return self.error / self.norm if self.norm else float("inf")


class OperatorValue(Record, frozen=True):
    """An operator of a compiled graph that computes something else than in eager."""

    direction: Literal["forward", "backward"]
    operator: str  # "aten.mul"
    forward: str | None  # the function of the forward that it belongs to
    module: str
    frame: Frame | None
    error: float  # relative
    rounding: float  # what eager is off by if its inputs are rounded otherwise
    number: int  # of the compiled graph; from 1
    is_fused: bool = False  # it is right if the result of each operator is asked for
    num_results: int = 1  # that are wrong, of which it is the last operator that all come from
    is_drawn_again: bool = False  # backward draws random numbers that forward has drawn before, and gets others

    @property
    def words(self) -> str:
        """Name it with what it belongs to: "aten.mul in the backward of gelu of h.3.mlp"."""
        owner = " of ".join(part for part in (self.forward, self.module) if part)
        return f"{self.operator} in the {self.direction}{f' of {owner}' if owner else ''}"


class OneSided(Record, frozen=True):
    """A value that only one of the runs has, or that has another shape."""

    role: Role
    name: str
    problem: str  # "only in eager"

    @property
    def words(self) -> str:
        """Say what it is."""
        return f"{self.role} of {self.name}: {self.problem}"


class StepValues(Record, frozen=True):
    """What one run has computed."""

    calls: tuple[ComparedCall, ...] = ()
    values: tuple[StepValue, ...] = ()
    num_graphs: int = 0  # that torch.compile has made
    breaks: tuple[str, ...] = ()  # why it has made several
    backends: tuple[str, ...] = ()  # as the program asked for them
    uncompiled: tuple[str, ...] = ()  # paths of modules that the program compiles, and whose code is all torch's
    regions: tuple[CompiledRegion, ...] = ()  # in the order in which they are compiled, each once
    first_wrong: OperatorValue | None = None  # operator by operator
    drawn_again: OperatorValue | None = None  # where a graph is cut
    num_replayed: int = 0  # compiled graphs
    replay_problem: str = ""  # why one was not
    base_folder: str = ""  # file names of frames are relative to it, or to an installed package


class CompiledValueDiff(Record, frozen=True):
    """A value that compiled code computes wrongly."""

    value: StepValue
    rounding: float  # relative: what it is off by if eager rounds otherwise


class CompiledDiff(Record, frozen=True):
    """A step of a compiled program beside the same step in eager."""

    label: str
    calls: tuple[ComparedCall, ...]
    num_compared: int
    differences: tuple[CompiledValueDiff, ...]
    one_sided: tuple[OneSided, ...]
    incomparable: tuple[str, ...]  # sentences: what was not compared, and why
    largest: float  # relative, of all that are equal but for rounding
    largest_rounding: float
    num_graphs: int
    breaks: tuple[str, ...]
    backends: tuple[str, ...]
    stage: str = ""  # the first backend of `STAGES`, or the program's own, with which it differs
    right: tuple[str, ...] = ()  # those before it, which compute what eager does
    failed: tuple[str, ...] = ()  # backends with which the program fails
    operator: OperatorValue | None = None
    regions: tuple[CompiledRegion, ...] = ()  # those that are wrong, compiled alone; only if no line is known
    num_right_regions: int = 0  # those that are right, compiled alone
    num_replayed: int = 0  # compiled graphs whose operators were compared
    replay_problem: str = ""
    num_eager_calls: int = 0  # of backward
    base_folder: str = ""
    eager_failure: str = ""  # a sentence: how the program fails in eager, and compiled does not; nothing is compared

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but by rounding."""
        has_no_other = not self.differences and not self.one_sided and not self.eager_failure
        return has_no_other and self.num_eager_calls == len(self.calls)

    @property
    def is_line_known(self) -> bool:
        """Whether the operator that is wrong comes from a line of the program."""
        return self.operator is not None and self.operator.frame is not None

    @property
    def part(self) -> str:
        """The part of torch that is at fault, in words; empty: the backend itself."""
        is_partitioner = self.stage == "aot_eager" and UNCUT in self.right
        return _PARTITIONER if is_partitioner else STAGE_WORDS.get(self.stage, "")


def judge(label: str, rounded: Sequence[StepValues], compiled: StepValues) -> CompiledDiff:
    """Compare a compiled run with the eager one.

    Args:
        label: The program.
        rounded: What eager computes with other roundings, several times, beside what it computes.
        compiled: What compiled code computes, beside the same.
    """
    noise = _noise(rounded)
    differences, incomparable, equal, rounded_away = [], [], [], []
    one_sided = []
    for value in compiled.values:
        beside = noise.get(value.key)
        if value.unread:
            incomparable.append(f"{value.name}: {value.unread}")
        elif beside is not None and beside.problem:
            incomparable.append(f"{value.name}: two eager runs differ in what they have")
        elif value.problem:
            one_sided.append(OneSided(value.role, value.name, value.problem))
        elif beside is None:
            incomparable.append(f"{value.name}: two eager runs differ in what they have")
        elif beside.relative > NOISY:
            rounded_away.append((value.name, beside.relative))
        elif differs(value, beside):
            differences.append(CompiledValueDiff(value=value, rounding=beside.relative))
        else:
            equal.append((value.relative, beside.relative))
    have = {value.key for value in compiled.values}
    # A variable of a compiled function is not there while it is compiled.
    left = [key for key in noise if key not in have and key.role not in ("tensor", "memory")]
    one_sided += [OneSided(key.role, key.name, "only in eager") for key in left]
    return CompiledDiff(
        label=label,
        calls=compiled.calls,
        num_compared=len(differences) + len(equal),
        differences=tuple(sorted(differences, key=lambda one: (one.value.call, -_beyond(one)))),
        one_sided=tuple(one_sided),
        incomparable=(*incomparable, *_rounded_away(rounded_away)),
        largest=max((one for one, _ in equal), default=0.0),
        largest_rounding=max((one for _, one in equal), default=0.0),
        num_graphs=compiled.num_graphs,
        breaks=compiled.breaks,
        backends=compiled.backends,
        num_eager_calls=len(rounded[0].calls),
        base_folder=compiled.base_folder,
    )


def _rounded_away(values: Sequence[tuple[str, float]]) -> Iterator[str]:
    """Say what rounding moves too far to be compared; the same of equal blocks in one sentence."""
    for group in alike(values, lambda one: (one[0],), lambda _: ()):
        least, most = f"{min(part for _, part in group):.0%}", f"{max(part for _, part in group):.0%}"
        moved = least if least == most else f"{least} to {most}"
        yield f"{name_by_indices(name for name, _ in group)}: rounding moves it by {moved}"


def _noise(rounded: Sequence[StepValues]) -> dict[ValueKey, StepValue]:
    """Take the largest of several roundings: one value alone may be right by chance."""
    found: dict[ValueKey, StepValue] = {}
    for value in (value for run in rounded for value in run.values):
        other = found.setdefault(value.key, value)
        if (bool(value.problem), value.error, value.num_odd) > (bool(other.problem), other.error, other.num_odd):
            found[value.key] = value
    return found


def differs(value: StepValue, rounded: StepValue) -> bool:
    """Return whether a value is off by more than rounding. NOTE [Rounding, measured]."""
    if value.num_odd > rounded.num_odd:
        return True
    return value.error > allowed(rounded.error, value.norm, value.dtype, prod(value.shape))


def allowed(noise: float, norm: float, dtype: str, num_elements: int) -> float:
    """Return by how much a value may be off."""
    unit = UNIT_OF.get(dtype)
    factor = FACTOR * (1 + BY_CHANCE / max(num_elements, 1))
    return 0.0 if unit is None else max(factor * noise, UNITS * unit * norm)


UNIT_OF: Final = {
    "float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}  # fmt: skip


def _beyond(one: CompiledValueDiff) -> float:
    return one.value.relative / max(one.rounding, 1e-12)


def region_words(diff: CompiledDiff) -> str:
    """Say which compiled region is wrong, as far as that was looked for."""
    num_right = diff.num_right_regions
    if not diff.regions:
        return f"Each of its {num_right:,} compiled regions is right if it is compiled alone." if num_right else ""
    wrong = "; ".join(one.words for one in diff.regions)
    subject = "The wrong region is" if len(diff.regions) == 1 else "The wrong regions are"
    others = f"; {format_count(num_right, 'other')}, compiled alone, {'is' if num_right == 1 else 'are'} right"
    return f"{subject} {wrong}{others if num_right else ''}."


def stages_before(backends: Sequence[str]) -> tuple[str, ...]:
    """List the backends that do a part of what those of a program do."""
    own = set(backends)
    if len(own) == 1 and (name := next(iter(own))) in STAGES:
        return STAGES[: STAGES.index(name)]
    return STAGES
