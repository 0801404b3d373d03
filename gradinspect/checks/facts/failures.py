"""Facts about the error that ends a program."""

from gradinspect.graph import Frame, Record


class FailedTensor(Record, frozen=True, kw_only=True):
    """A tensor that the failed statement names, or that the layer was given in which it failed."""

    name: str  # as the statement writes it: "self.fc.weight"; "the input of net.3"
    dtype: str  # "float32"
    shape: tuple[int, ...]
    device: str
    is_trained_leaf: bool  # a leaf that requires grad
    is_integer: bool
    extremes: tuple[int, int] | None = None  # the least and the greatest of integers in memory
    is_argument: bool = False  # of a layer, so that its name is words
    is_of_module: bool = False  # a parameter of what the statement names
    has_sparse_gradient: bool = False
    made: Frame | None = None  # the line of the operator that made it
    off: Frame | None = None  # where gradients were disabled, of an inference tensor


class FailedIterator(Record, frozen=True, kw_only=True):
    """An iterator that the failed statement names, and in which nothing was found."""

    name: str  # of the variable
    value: str  # what it was assigned: "model.parameters()"
    made: Frame
    read: Frame  # the first line after it that reads the variable


class SharedParameter(Record, frozen=True, kw_only=True):
    """A parameter that two groups of one optimizer have."""

    names: tuple[str, ...]  # all that it has; (): none is known
    groups: tuple[int, int]


class MisfitState(Record, frozen=True, kw_only=True):
    """A parameter for which an optimizer holds a state of another shape, as one that was loaded into it has."""

    name: str  # "": not known
    shape: tuple[int, ...]
    state: tuple[int, ...]  # the shape of its state


class FailedCall(Record, frozen=True, kw_only=True):
    """A call of torch that raised the error which ended the program."""

    error: str  # its first sentence
    frame: Frame
    called: Frame | None  # the line of the program that called the function of `frame`
    tensors: tuple[FailedTensor, ...]
    created: Frame | None = None  # the optimizer that the statement names
    loader: Frame | None = None  # where the DataLoader was made that was making a batch, or made what the layer got
    schedule: Frame | None = None  # where the scheduler was made that was stepping
    iterators: tuple[FailedIterator, ...] = ()  # if no tensor is named
    layer: str = ""  # in which it was raised, within what the statement names: "net.3, a Linear"
    layer_made: Frame | None = None  # where that was made
    shared: tuple[SharedParameter, ...] = ()
    misfit: MisfitState | None = None
    unregistered: tuple[
        tuple[str, str], ...
    ] = ()  # lists of modules, and what they should be, if nothing else is known
    lacks_gradient: bool = False  # Python refused the None that is the gradient of each of the tensors
    refuses_copy: bool = False  # copy.deepcopy() found the tensor, which has a graph
    text: str = ""  # of the whole error, where it says more than its first sentence
    constructed: str = ""  # the class of torch that the statement makes: "MSELoss"
