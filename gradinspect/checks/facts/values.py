"""Facts about values: where a gradient got lost, what grew by broadcasting, what a custom Function computes."""

from typing import Literal, TypeAlias

from gradinspect.checks.facts.value_flow import DetachCause
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
    kind: Literal["cut", "unused", "unread"]
    noticed: NoticedAt
    cause: DetachCause = "unknown"
    op: str = ""  # that detached it; of an unused one the last that its value went into
    num_read: int = 1  # tensors that op read
    path: tuple[str, ...] = ()  # operators from the first that read it to the one that detached it
    read: Frame | None = None
    cut: Frame | None = None  # where it was detached
    called: Frame | None = None  # where the helper function was called that detached it
    made: Frame | None = None  # where it was made, if nothing read it
    off: Frame | None = None  # where gradients were disabled, or a reentrant checkpoint called
    forced: Frame | None = None  # where requires_grad_() made a leaf of what no longer had a graph
    other: Frame | None = None  # another backward call that went through what was made of the detached value
    used: Frame | None = None  # where the value went on without its graph
    backward: Frame | None = None
    module: str | None = None  # that holds it, if that module was not called
    num_calls: int | None = None  # backward calls that were observed: what is not used in them may be used later


Shape = tuple[int, ...]
LOSSES = ("mse_loss", "huber_loss", "smooth_l1_loss", "l1_loss", "kl_div", "poisson_nll_loss", "soft_margin_loss")


class GrownOperator(Record, frozen=True, kw_only=True):
    """An operator whose result has more elements than either of its inputs."""

    sequence_nr: int  # of its node
    op: str  # "sub", as torch names it
    shapes: tuple[Shape, Shape]
    is_learned: tuple[bool, bool]  # whether a gradient goes to each side
    frame: Frame | None


GradcheckVerdict: TypeAlias = Literal[
    "correct", "wrong backward", "writes gradient", "wrong double backward", "not checked"
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


class CheckedFunction(Record, frozen=True, kw_only=True):
    """What gradcheck said of one custom Function."""

    name: str  # "LeakyClamp"
    verdict: GradcheckVerdict
    reason: str = ""  # why it was not checked, or what torch said
    slopes: tuple[Slope, ...] = ()
    applied: Frame | None = None
    defined: Frame | None = None  # its backward
