"""What a program has read of its tensors in real steps, in its order: numbers, contents, and sizes made of values."""

from gradinspect.graph import Record


class MadeTensor(Record, frozen=True):
    """How a result lies in its memory, whose size depends on values."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    num_elements: int  # of the whole storage
    dtype: str  # "float32"
    contents: bytes | None = None  # by rows, of what kernels read without an operator


class TensorRead(Record, frozen=True):
    """One time that something was read."""

    file: str
    line: int  # the program's innermost one
    op: str  # "aten.nonzero.default", "numpy", "tolist"
    in_backward: bool  # a node was running
    shapes: tuple[tuple[int, ...], ...]  # of what was read
    number: str = ""  # that a scalar was: "3", "nan", "True"
    kind: str = ""  # the Python type of that
    contents: bytes | None = None  # of a tensor, by rows; None: they were too many to be kept
    made: tuple[MadeTensor, ...] = ()
    scratch_bytes: int = 0  # that the kernel had at its peak, with its results; 0: no more than those


class ReadValues(Record, frozen=True):
    """All that was read."""

    num_steps: int
    reads: tuple[TensorRead, ...]
