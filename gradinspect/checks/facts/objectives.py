"""Facts about what a loss is made of, and about the values that training begins with."""

from gradinspect.graph import Frame, Record


class AttachedAdvantage(Record, frozen=True, kw_only=True):
    """The factor of a log-probability has a graph, to parameters that the log-probability does not have."""

    subtracted: Frame | None = None  # where it is computed: `returns - values`
    scored: Frame | None = None  # the log-probability
    used: Frame | None = None  # where the two are multiplied
    backward: Frame | None = None


class AttachedTarget(Record, frozen=True, kw_only=True):
    """A regression on the best of a network's own next values, through which gradients flow."""

    op: str  # that chose the value: "max"
    made: Frame | None = None
    used: Frame | None = None
    backward: Frame | None = None


class RewardMinimized(Record, frozen=True, kw_only=True):
    """A loss adds the product of a log-probability and a reward, without a minus."""

    factor: str  # the reward, as the program writes it
    is_ratio: bool = False  # it is multiplied by the ratio of a probability to an earlier one
    used: Frame | None = None
    backward: Frame | None = None


class CollapsedOutputs(Record, frozen=True, kw_only=True):
    """A loss is nothing but negated similarities, and a gradient goes through both sides of each to the same layers."""

    num_calls: int
    made: tuple[Frame | None, ...] = ()  # the similarities
    backward: Frame | None = None


class UnseenNoise(Record, frozen=True, kw_only=True):
    """The target of a regression is noise that nothing else has read, while the input has noise of another draw."""

    mixed: Frame | None = None  # where noise was added to the input
    called: Frame | None = None  # where the function was called that did so, if it is not that which drew the target
    drawn: Frame | None = None  # the noise of the target
    used: Frame | None = None
    backward: Frame | None = None


class UnlearnedLookup(Record, frozen=True, kw_only=True):
    """Layers are given the entries of a table that are nearest to a code, and the code gets no gradient from them."""

    op: str  # that chose the entries: "argmin"
    chosen: Frame | None = None
    looked_up: Frame | None = None
    coded: Frame | None = None  # the code that the loss compares with the entry
    compared: Frame | None = None
    used: Frame | None = None  # the first layer
    backward: Frame | None = None


class OverwrittenValues(Record, frozen=True, kw_only=True):
    """Nothing is left of the matrices that a line has set: they were initialized again, and nothing had read them."""

    num_tensors: int
    set: Frame | None = None
    overwritten: Frame | None = None


class FilledPadding(Record, frozen=True, kw_only=True):
    """The padding row of an embedding is not zero, since an initialization has filled the whole table."""

    row: int
    filled: Frame | None = None
    used: Frame | None = None


class UnlikeReductions(Record, frozen=True, kw_only=True):
    """A loss adds a sum over all rows of a batch to a mean over them."""

    rows: int
    num_calls: int
    layer: Frame | None = None  # where the loss was made that sums, if it is a module
    summed: Frame | None = None
    averaged: Frame | None = None
    used: Frame | None = None  # where they are added


class OutweighedCode(Record, frozen=True, kw_only=True):
    """The divergence of a code is added to an error that is less than it, even without the code."""

    elements: int  # of an example, over which the error is averaged
    nats: float  # that the divergence can have at most, if it is to be worth it
    num_calls: int
    summed: Frame | None = None  # the divergence
    error: Frame | None = None
    used: Frame | None = None  # where they are added


class RepeatedTerm(Record, frozen=True, kw_only=True):
    """One term is added to a loss more than once, with the same weight."""

    count: int
    first: Frame | None = None  # where it is computed
    again: Frame | None = None  # where the same is computed again; None if it is one tensor
    used: tuple[Frame | None, ...] = ()  # where it is added
