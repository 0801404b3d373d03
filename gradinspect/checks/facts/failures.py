"""Facts about the error that ends a program."""

from gradinspect.graph import Frame, Record


class FailedTensor(Record, frozen=True, kw_only=True):
    """A tensor that the failed statement names."""

    name: str  # as the statement writes it: "self.fc.weight"
    dtype: str  # "float32"
    shape: tuple[int, ...]
    device: str
    is_trained_leaf: bool  # a leaf that requires grad
    is_integer: bool
    has_sparse_gradient: bool = False
    made: Frame | None = None  # the line of the operator that made it
    off: Frame | None = None  # where gradients were disabled, of an inference tensor


class FailedCall(Record, frozen=True, kw_only=True):
    """A call of torch that raised the error which ended the program."""

    error: str  # its first sentence
    frame: Frame
    called: Frame | None  # the line of the program that called the function of `frame`
    tensors: tuple[FailedTensor, ...]
    created: Frame | None = None  # the optimizer that the statement names
