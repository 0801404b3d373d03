"""Facts about a training loop: what happens to gradients and parameters between backward calls."""

from typing import Literal, TypeAlias

from gradinspect.graph import Frame, Record

GradientMisuseKind: TypeAlias = Literal[
    "added", "closure", "cleared", "partial", "early", "late", "scaled", "unscaled", "other"
]
UnheldKind: TypeAlias = Literal[
    "container", "attribute", "buffer", "computed", "replaced", "remade", "later", "unfrozen", "model", "instead",
    "group", "twin", "anew", "rebound",
]  # fmt: skip
FrozenKind: TypeAlias = Literal["copy", "phase", "never", "filter", "plain", "default", "zero"]
OptimizerMisuseKind: TypeAlias = Literal[
    "never", "anew", "scheduled", "falls", "sunken", "zero", "late", "outlived", "squared",
]  # fmt: skip
UnmovedKind: TypeAlias = Literal["assigned", "undone", "lost", "idle", "cleared", "zero", "rounded"]
HookKind: TypeAlias = Literal["tensor", "accumulated", "forward", "backward"]


class GradientMisuse(Record, frozen=True, kw_only=True):
    """The gradients of an optimizer were cleared, clipped or added to at the wrong moment."""

    kind: GradientMisuseKind
    optimizer: str  # its variable
    names: tuple[str, ...]  # of the parameters
    backward: Frame | None = None
    step: Frame | None = None
    cleared: Frame | None = None
    clipped: Frame | None = None
    unscaled: Frame | None = None
    other: Frame | None = None  # the backward of another loss
    uncalled: Frame | None = None  # names zero_grad, without calling it


class UnheldParameters(Record, frozen=True, kw_only=True):
    """Parameters of one model that no optimizer holds, for one reason."""

    kind: UnheldKind
    where: str  # the attribute or module that has them
    names: tuple[str, ...]
    optimizer: str
    created: Frame | None = None  # the optimizer
    made: Frame | None = None  # what has the parameters
    backward: Frame | None = None


class OptimizerMisuse(Record, frozen=True, kw_only=True):
    """Something is wrong with when an optimizer is made or steps, or with its learning rate."""

    kind: OptimizerMisuseKind
    optimizer: str
    created: Frame | None = None
    backward: Frame | None = None
    cleared: Frame | None = None
    scheduled: Frame | None = None
    scheduler: Frame | None = None  # where it was made
    step: Frame | None = None
    ratio: float = 1.0  # of a learning rate to the one before; of the last to the largest, if it is next to nothing
    num_steps: int = 0
    sunken_after: int = 0  # steps, since which it is next to nothing
    sunken_to: float = 1e-4  # of the largest, or less
    squared: float = 0.0  # the learning rate, if it is a factor of itself
    function: Frame | None = None  # that returns it
    other: str = ""  # the optimizer that steps instead
    other_created: Frame | None = None


class KeptGradient(Record, frozen=True, kw_only=True):
    """An optimizer's state is the gradient itself, no copy of it."""

    optimizer: str
    key: str  # of the state: "velocity"
    num_steps: int  # after which it was so
    kept: Frame | None = None
    step: Frame | None = None


class EvalTraining(Record, frozen=True, kw_only=True):
    """A model is trained in eval mode."""

    model: str  # its class
    dropouts: tuple[str, ...] = ()
    batch_norms: tuple[str, ...] = ()
    switched: Frame | None = None
    backward: Frame | None = None
    step: Frame | None = None


class UndoneEval(Record, frozen=True, kw_only=True):
    """A frozen part was put into eval mode, and train() of the model that has it put it back."""

    part: str  # its path
    layers: tuple[str, ...]  # in it, that change their running statistics; empty for the part itself
    put: Frame | None = None
    undone: Frame | None = None


class DropoutInEval(Record, frozen=True, kw_only=True):
    """F.dropout() was called without `training=` by a module in eval mode."""

    module: str  # its class
    called: Frame | None = None


class TrainModeEvaluation(Record, frozen=True, kw_only=True):
    """What a model in train mode returns without a graph is compared with labels, as by an evaluation."""

    function: str  # that compares: "cross_entropy"
    layers: tuple[str, ...]  # what is active in that mode: "BatchNorm", "dropout"
    called: Frame | None = None  # the line of the program that called the first of them
    compared: Frame | None = None


class SharedLayer(Record, frozen=True, kw_only=True):
    """A container has one module in several places."""

    container: str  # its path
    layer: str  # the class of the module
    count: int
    made: Frame | None = None
    backward: Frame | None = None


class UncalledBackward(Record, frozen=True, kw_only=True):
    """A module has a method `backward`, which autograd does not call, and nothing else in the program does."""

    module: str  # its class
    defined: Frame | None = None


class NothingLoaded(Record, frozen=True, kw_only=True):
    """A checkpoint was loaded of which no name is one of the model's."""

    model: str  # its class
    num_names: int
    given: str  # a name in the checkpoint
    wanted: str  # a name in the model
    is_nested: bool = False  # the checkpoint has state dicts under its names
    loaded: Frame | None = None


class IneffectiveFlag(Record, frozen=True, kw_only=True):
    """An attribute was set that torch does not read, of parameters or of a module that has them."""

    attribute: str  # as it is spelled
    names: tuple[str, ...]  # of the parameters
    modules: tuple[str, ...] = ()  # their paths; none if the attribute is one of the parameters themselves
    target: str = ""  # what it is set of, as the program writes it: `param`
    unfreezes: bool = False  # it was set to True, and the parameters do not require grad
    set: Frame | None = None
    backward: Frame | None = None


class TwoInOneMemory(Record, frozen=True, kw_only=True):
    """Optimizers update two parameters that are in one memory."""

    first: str
    second: str  # the one that came to share the memory later
    is_same_shape: bool = True
    made: Frame | None = None
    step: Frame | None = None


class SharedWeights(Record, frozen=True, kw_only=True):
    """Weights that the program keeps apart from those that are trained are in the same memory."""

    kind: Literal["average", "state", "loaded", "snapshots", "model", "synchronized"]
    name: str  # of the parameter; the variable with the state dict, or with the model that is to be a copy
    taken: str = ""  # how the program asks for the state dict; the variable with the same model
    num_kept: int = 1  # state dicts of one line, between which an optimizer has stepped
    shared: Frame | None = None
    used: Frame | None = None


class LaggingBuffers(Record, frozen=True, kw_only=True):
    """The parameters of a copy follow those of a model, and its buffers do not, although it is called in eval mode."""

    model: str  # its class
    names: tuple[str, ...]  # of the buffers
    followed: Frame | None = None  # the line that updates the parameters of the copy


class MovedFrozen(Record, frozen=True, kw_only=True):
    """An optimizer has changed parameters that do not require grad."""

    optimizer: str
    names: tuple[str, ...]
    frozen: Frame | None = None
    step: Frame | None = None


class RefilledZeros(Record, frozen=True, kw_only=True):
    """Weights that a mask has set to zero, and that steps have changed since."""

    names: tuple[str, ...]
    num_zeros: int  # that the mask has made
    num_elements: int
    num_steps: int  # that found nearly all of them gone
    optimizer: str
    set: Frame | None = None
    step: Frame | None = None


class UnmovedParameters(Record, frozen=True, kw_only=True):
    """Parameters that have a gradient, and that no step of their optimizer has changed."""

    kind: UnmovedKind
    names: tuple[str, ...]
    num_steps: int
    optimizer: str = ""  # as all that follows, not known of what is assigned to a variable
    method: str = ""  # its class
    dtype: str = ""  # "float32"
    gradient: float = 0.0  # the largest element of those that backward left
    value: float = 0.0  # the largest of the parameters' own
    rate: float | None = None
    num_lost: int = 0  # elements that had a gradient and stayed the same, in all steps together
    num_elements: int = 0  # that had one
    is_own: bool = False  # the optimizer's class is the program's
    created: Frame | None = None  # the optimizer
    backward: Frame | None = None
    step: Frame | None = None
    written: Frame | None = None  # the last write of the program's own; where the new values are assigned


class FrozenByAccident(Record, frozen=True, kw_only=True):
    """Parameters do not require grad, and something says that they were meant to learn."""

    kind: FrozenKind
    names: tuple[str, ...]
    optimizer: str = ""
    asked: str = ""  # the name that spares a parameter from being frozen, and that none has
    frozen: Frame | None = None  # the line that froze them, or what they are copies of
    called: Frame | None = None  # that of its caller
    copied: Frame | None = None
    made: Frame | None = None  # a tensor that never required grad
    created: Frame | None = None  # the optimizer
    step: Frame | None = None
    num_steps: int = 0  # of the optimizer since then


class EqualUnits(Record, frozen=True, kw_only=True):
    """All rows of some weights are equal, and several steps have changed them alike."""

    names: tuple[str, ...]
    num_rows: int  # of the largest
    num_steps: int
    set: Frame | None = None  # where they got their first values
    backward: Frame | None = None


class HookPile(Record, frozen=True, kw_only=True):
    """Each iteration registers one more hook on the same tensors or modules."""

    kind: HookKind
    names: tuple[str, ...]  # of the tensors or modules
    count: int  # of the hooks on each by then
    registered: Frame | None = None
    backward: Frame | None = None


class SpoilingHook(Record, frozen=True, kw_only=True):
    """Hooks of one line returned only zeros, or the opposite of what they got, in every call."""

    effect: Literal["zeroed", "reversed"]
    names: tuple[str, ...] = ()  # of the parameters; none: they are on results of operators
    registered: Frame | None = None
    backward: Frame | None = None


class EmptiedIterator(Record, frozen=True, kw_only=True):
    """A clipping function was given an iterator in which nothing was left."""

    name: str  # of the variable
    value: str  # what is assigned to it
    made: Frame | None = None
    clipped: Frame | None = None


class ForgottenAssignment(Record, frozen=True, kw_only=True):
    """A loop over parameters computes new values, and assigns them to its own variable only."""

    name: str  # of the variable
    value: str  # as the program writes it
    assigned: Frame | None = None


class DroppedResult(Record, frozen=True, kw_only=True):
    """The result of a function that changes nothing was thrown away."""

    name: str
    called: Frame | None = None
    loop_variables: tuple[str, ...] = ()  # of the function that calls it
    is_data: bool = False  # what it was given has no graph
    backward: Frame | None = None
