"""Facts about values: where a gradient got lost, what grew by broadcasting, what a custom Function computes."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.checks.facts.value_flow import DetachCause
from gradinspect.checks.findings import line_of
from gradinspect.graph import Frame, Record


class NoticedAt(Record, frozen=True, kw_only=True):
    """What shows that a gradient is wanted."""

    kind: Literal["step", "read", "grad", "backward"]
    frame: Frame | None
    by: str = ""  # the variable of an optimizer
    created: Frame | None = None  # where that was made


class MissingGradient(Record, frozen=True, kw_only=True):
    """A tensor that no gradient reaches."""

    name: str
    kind: Literal["cut", "unused", "unread", "returned"]  # the last by autograd.grad(), which fills no `.grad`
    noticed: NoticedAt
    cause: DetachCause = "unknown"
    op: str = ""  # that detached it; of an unused one the last that its value went into
    num_read: int = 1  # tensors that op read
    path: tuple[str, ...] = ()  # operators from the first that read it to the one that detached it
    read: Frame | None = None
    cut: Frame | None = None  # where it was detached
    called: Frame | None = None  # where the helper function was called that detached it
    made: Frame | None = None  # where it was made, if nothing read it
    variable: str = ""  # that had what `cut` computes
    assigned: Frame | None = None  # where it got that
    replaced: Frame | None = None  # where it was assigned anew before anything read it
    off: Frame | None = None  # where gradients were disabled, or a reentrant checkpoint called
    forced: Frame | None = None  # where requires_grad_() made a leaf of what no longer had a graph
    other: Frame | None = None  # another backward call that went through what was made of the detached value
    used: Frame | None = None  # where the value went on without its graph
    backward: Frame | None = None
    module: str | None = None  # that holds it, if that module was not called
    num_calls: int | None = None  # backward calls that were observed: what is not used in them may be used later


class SameCause(NamedTuple):
    """All tensors that no gradient reaches for the same reason."""

    tensors: tuple[MissingGradient, ...]  # at least one

    @property
    def first(self) -> MissingGradient:
        """One of them, for what they have in common."""
        return self.tensors[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once."""
        return tuple(dict.fromkeys(one.name for one in self.tensors))

    @property
    def is_one(self) -> bool:
        """Whether one name stands for all."""
        return len(self.names) == 1


def by_cause(missing: Sequence[MissingGradient]) -> Iterator[SameCause]:
    """Group tensors by what they lost their gradient to."""
    ordered = sorted(enumerate(missing), key=lambda item: (_cause(item[1]), item[0]))
    groups = [tuple(one for _, one in group) for _, group in groupby(ordered, key=lambda item: _cause(item[1]))]
    for group in sorted(groups, key=lambda group: missing.index(group[0])):
        yield SameCause(group)


def _cause(one: MissingGradient) -> tuple[str, ...]:
    if one.kind == "unread":
        return (one.kind, str(one.noticed.frame), one.noticed.kind)
    is_scope = one.cause in ("grad_off", "checkpoint")  # it covers many lines, and may begin on one that was not seen
    return (one.kind, one.cause, line_of(one.off if is_scope else one.cut))


class NonLeafGradient(Record, frozen=True, kw_only=True):
    """A `.grad` that the program reads, of a non-leaf tensor."""

    name: str
    op: str = ""  # that made it
    made: Frame | None = None
    backward: Frame | None = None
    read: Frame | None = None
    leaves: Sequence[str] = ()  # that it was computed from and that have a name, so that it is an intermediate tensor


class GradientTerm(Record, frozen=True, kw_only=True):
    """A gradient without a graph that a loss consists of, or that is added to it."""

    gradient: Frame | None = None  # where it was computed
    used: Frame | None = None  # where it was added
    backward: Frame | None = None
    is_refused: bool = False  # the loss consists of nothing else
    is_attribute: bool = False  # it was read from `.grad`


class ConstantTerm(Record, frozen=True, kw_only=True):
    """A term of a loss that lost its graph."""

    op: str  # that detached it
    cause: DetachCause
    cut: Frame | None = None
    reduced: Frame | None = None  # where it became one number
    used: Frame | None = None  # where it was added
    backward: Frame | None = None


class IdleTerm(Record, frozen=True, kw_only=True):
    """A term of a loss that reaches only what another optimizer holds, and was cut off from what this one trains."""

    op: str  # that detached it
    cause: DetachCause
    optimizer: str  # that steps after backward
    other: str  # that holds what the term reaches, and does not
    cut: Frame | None = None
    term: Frame | None = None
    backward: Frame | None = None


class SampledInput(Record, frozen=True, kw_only=True):
    """A layer is given what a distribution sampled without a gradient, and the loss trains the distribution."""

    is_normal: bool = False  # torch.normal() drew it, rather than sample()
    sampled: Frame | None = None
    used: Frame | None = None
    backward: Frame | None = None


class DivergenceInput(Record, frozen=True, kw_only=True):
    """A kl_div whose first argument is made of probabilities, or is the output of a layer."""

    maker: str  # the function that made it: "softmax"
    is_probability: bool
    made: Frame | None = None
    used: Frame | None = None  # where kl_div is called
    backward: Frame | None = None


class UnknownLabels(Record, frozen=True, kw_only=True):
    """Targets of a loss that are not among those that it knows."""

    loss: str  # "cosine_embedding_loss"
    wants_signs: bool  # 1 and -1, and all are 0 or 1; else probabilities
    least: float
    most: float
    made: Frame | None = None
    used: Frame | None = None  # where the loss is called


class SameTwice(Record, frozen=True, kw_only=True):
    """A function that compares two tensors was given the same function of the same leaves, computed twice."""

    op: str  # "sub"
    num_calls: int  # on its line, in each of which both had the same values
    names: tuple[str, ...] = ()  # of the leaves
    first: Frame | None = None  # where one was computed
    second: Frame | None = None
    compared: Frame | None = None


class InvertedMask(Record, frozen=True, kw_only=True):
    """A mask hides all tokens but one, which is at the end or the start of the rows."""

    token: int  # its id
    num_calls: int  # with padding, on the line
    made: Frame | None = None
    used: Frame | None = None
    others: tuple[Frame, ...] = ()  # further lines that use what was made there
    looked_up: Frame | None = None  # where the tokens are embedded


class SelfSimilarity(Record, frozen=True, kw_only=True):
    """A loss takes similarities of a batch with itself for scores, and no target is on the diagonal."""

    num_rows: int
    num_calls: int
    share: float  # of the softmax that is on the diagonal
    made: Frame | None = None
    used: Frame | None = None


class LossWithoutGraph(Record, frozen=True, kw_only=True):
    """A loss that does not require grad."""

    detached: tuple[MissingGradient, ...] = ()  # what it was computed from, up to the nearest call that detached
    frozen: Sequence[str] = ()  # if nothing was detached, the parameters that it was computed from
    frozen_at: Frame | None = None
    made: Frame | None = None
    backward: Frame | None = None


GradcheckVerdict: TypeAlias = Literal[
    "correct", "one direction", "surrogate", "wrong backward", "writes gradient", "wrong double backward", "not checked"
]


class Slope(Record, frozen=True, kw_only=True):
    """The directional derivative: numeric (finite differences), and by the Function's own backward."""

    argument: str  # of forward
    numeric: float
    backward: float

    @property
    def is_wrong(self) -> bool:
        """Whether the two differ by more than finite differences are accurate."""
        return not abs(self.numeric - self.backward) <= 1e-4 + 1e-2 * abs(self.numeric)

    @property
    def is_far_off(self) -> bool:
        """Whether the two differ by more than an approximation would."""
        return not abs(self.numeric - self.backward) <= 1e-4 + 0.1 * max(abs(self.numeric), abs(self.backward))


class CheckedFunction(Record, frozen=True, kw_only=True):
    """What finite differences said of one custom Function."""

    name: str  # "LeakyClamp"
    verdict: GradcheckVerdict
    reason: str = ""  # why it was not checked, or what torch said
    slopes: tuple[Slope, ...] = ()
    applied: Frame | None = None
    defined: Frame | None = None  # its backward
    returned: Frame | None = None  # the return of that, if there is one


class LastAlongBatch(Record, frozen=True, kw_only=True):
    """A line that takes the last sequence of what an RNN returned, or a mean over all of them, in every call."""

    op: str  # the class of the RNN
    how: str = "last"  # or the function over the sequences: "mean"
    shape: tuple[int, int]  # steps and sequences
    layer: Frame | None = None  # where the RNN was made
    ran: Frame | None  # where the RNN was called
    used: Frame | None


class PaddedEnds(Record, frozen=True, kw_only=True):
    """A line that takes the last step of an RNN, of rows of which many end in padding."""

    op: str  # the class of the RNN
    padding: int  # the id
    is_batch_first: bool
    num_padded: int  # rows, in all calls
    num_rows: int
    ran: Frame | None  # where the RNN was called
    used: Frame | None


class SummedColumns(Record, frozen=True, kw_only=True):
    """A gradient of one column that is the sum over several, and is used beside each of them."""

    shape: tuple[int, ...]  # of what it is the gradient
    graded: Frame | None
    used: Frame | None


class RepeatedBatch(Record, frozen=True, kw_only=True):
    """A line that draws the first batch of a DataLoader each time, in an order that is always the same."""

    num_times: int
    num_batches: int
    drawn: Frame | None


class ChangedSamples(Record, frozen=True, kw_only=True):
    """A line below `__getitem__` that changes samples in the memory of the dataset, which it had changed before."""

    num_times: int
    written: Frame | None


class LateVariable(Record, frozen=True, kw_only=True):
    """Functions that a loop made share its variable, and parameters that it has passed get no gradient."""

    variable: str
    count: int  # of the functions
    names: tuple[str, ...]  # of the parameters
    made: Frame | None = None  # the functions
    backward: Frame | None = None
    noticed: Frame | None = None


class RescaledInputs(Record, frozen=True, kw_only=True):
    """Inputs of a layer were divided by 255 although they lay between 0 and 1 before."""

    most: float  # the largest value before the division
    spread: float  # between the least and the largest value that the layer was given
    num_calls: int
    divided: Frame | None = None
    used: Frame | None = None  # the layer
