"""Facts about a recorded graph: saved tensors that were written to, blocks run twice, graphs kept alive."""

from typing import Literal

from gradinspect.graph import Frame, Record, TensorInfo

MASKED_ASSIGNMENT = "masked assignment"
INDEXED_ASSIGNMENT = "indexed assignment"  # by a tensor, such as a mask of fewer dimensions than what it selects from


class Write(Record, frozen=True, kw_only=True):
    """One operator that wrote into memory."""

    op: str  # "add_", as torch names it
    frame: Frame | None
    called: Frame | None = None  # the line that called the function of that line
    is_tracked: bool = False  # by autograd; not so under no_grad and through .data
    has_form: bool = False  # torch has the operator without the underscore too
    optimizer: str | None = None  # the variable that holds the optimizer whose step this was


class StaleValue(Record, frozen=True, kw_only=True):
    """A saved tensor that is no longer what it was when it was saved."""

    node: int
    name: str  # of the saved attribute
    label: str  # of the tensor: a parameter's or a variable's name, or what made it
    writes: tuple[Write, ...]  # since it was saved; empty if they were not recorded
    version: int
    expected_version: int | None = None  # None: its version did not move, so torch will not notice
    shared: Frame | None = None  # where NumPy got its memory, if nothing else is known of the write


class KeptTensor(Record, frozen=True, kw_only=True):
    """A tensor that an operator inside a checkpointed block saved."""

    info: TensorInfo
    op: str | None  # "relu", as the program calls it
    frame: Frame | None


class Mismatch(Record, frozen=True, kw_only=True):
    """The first tensor at which two runs of one block differ."""

    position: int
    first: KeptTensor | None  # None: the first run had ended
    again: KeptTensor | None
    num_first: int  # tensors that the first run saved
    num_again: int
    decided: Frame | None = None  # the line that decided between them

    @property
    def is_refused(self) -> bool:
        """Whether torch sees it as well: it compares the number of tensors, and their shapes and dtypes."""
        if self.num_first != self.num_again or self.first is None or self.again is None:
            return True
        return self.first.info != self.again.info


class Redrawn(Record, frozen=True, kw_only=True):
    """A block that draws random numbers, and gets others in its recomputation."""

    frame: Frame | None  # the line that calls checkpoint


class KeptHistory(Record, frozen=True, kw_only=True):
    """Something that keeps the graphs of earlier iterations alive."""

    held_by: Literal["variable", "gradient"]
    name: str = ""  # "losses[*]"
    num_tensors: int
    num_rounds: int  # whose graphs it keeps
    stores: tuple[Frame, ...] = ()  # the lines that store under this name
    made: Frame | None = None  # the line that made one of the tensors, if no line is known that stores them
    adds: bool = False  # they add to what is there, rather than replace it


class FirstNonfinite(Record, frozen=True, kw_only=True):
    """The first call whose result was not finite, of those that a loss was computed from."""

    op: str  # "div"
    is_nan: bool
    number: int = 1  # among the calls of it on its line, in the order in which they were made
    num_alike: int = 1  # those calls
    made: Frame | None = None
    masked: Frame | None = None  # where what is not finite is multiplied by 0


class NonfiniteValue(Record, frozen=True, kw_only=True):
    """The earliest saved value of the forward pass that is not finite."""

    node: int | None  # that made it; None: it came from outside the graph
    label: str
    is_nan: bool = True


class LastLossOnly(Record, frozen=True, kw_only=True):
    """A line computes several losses for each backward call, which goes through the last one."""

    num_losses: int  # of a round
    num_rounds: int
    loss: Frame | None = None
    backward: Frame | None = None
    is_below: bool = False  # backward is called below the loop that computes them
