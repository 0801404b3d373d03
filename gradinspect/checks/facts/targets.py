"""Facts about targets, from their values."""

from typing import Literal

from gradinspect.graph import Frame, Record


class TokenOffset(Record, frozen=True, kw_only=True):
    """Scores of tokens are compared with what stands at another distance than one after what the model was given."""

    distance: int  # 2: the token after the next one; 0: the one that the model is given there
    num_calls: int
    looked_up: Frame | None = None
    cut: Frame | None = None  # where the first scores were left out
    used: Frame | None = None


class NextTokenRead(Record, frozen=True, kw_only=True):
    """The score at each place is computed from the token that it is to predict."""

    op: str  # the class of an RNN that reads in both directions; empty for an attention
    num_calls: int
    looked_up: Frame | None = None
    attended: Frame | None = None
    used: Frame | None = None


class OutOfReach(Record, frozen=True, kw_only=True):
    """Targets that the last function of a model cannot return."""

    op: str  # "sigmoid"
    loss: str
    least: float
    most: float
    share: float  # of the targets that lie outside
    num_calls: int
    layer: Frame | None = None  # where the last module was made, if it is one
    made: Frame | None = None  # where the last function was called
    used: Frame | None = None


class IgnoredClass(Record, frozen=True, kw_only=True):
    """A class, an item or the blank of ctc_loss that is among what the program has to learn."""

    kind: Literal["class", "item", "blank"]
    index: int
    num_times: int
    num_all: int  # of labels or items
    num_others: int  # kinds of them
    padding: int | None = None  # the label that belongs to padded tokens, and is not ignored
    layer: Frame | None = None  # where the loss or the embedding was made, if it is a module
    used: Frame | None = None


class CountedPadding(Record, frozen=True, kw_only=True):
    """More than half of the labels that a loss averages are those of padded tokens."""

    label: int
    num_calls: int
    num_padding: int
    num_all: int
    filler: int | None = None  # the id that fills up rows, where no embedding has a padding_idx
    is_of_tokens: bool = False  # other tokens have this label, too
    layer: Frame | None = None  # where the loss was made, if it is a module
    used: Frame | None = None


class EqualLabels(Record, frozen=True, kw_only=True):
    """All labels that a loss was given are the same."""

    loss: str
    value: float
    num_labels: int
    num_calls: int
    made: Frame | None = None
    used: Frame | None = None


class OwnLabels(Record, frozen=True, kw_only=True):
    """The labels of a loss are the largest of the very scores that it is given."""

    op: str  # "argmax"
    num_calls: int
    made: Frame | None = None
    used: Frame | None = None


class TwoOrders(Record, frozen=True, kw_only=True):
    """What a model was given and what it is compared with were put into orders that were drawn apart."""

    length: int
    num_calls: int
    first: Frame | None = None
    second: Frame | None = None
    used: Frame | None = None
    are_loaders: bool = False  # that have drawn both
    loaders: tuple[Frame, ...] = ()  # where these were made


class WrongSign(Record, frozen=True, kw_only=True):
    """The whole loss is a negative loss function, or the logarithm of the probability of what is right."""

    op: str
    value: float  # of the loss, at the last call
    num_calls: int
    made: Frame | None = None
    backward: Frame | None = None


class OtherDraw(Record, frozen=True, kw_only=True):
    """The score of an action belongs to another draw than that which was taken."""

    num_calls: int
    taken: Frame | None = None
    drawn: Frame | None = None
    scored: Frame | None = None


class CutTargets(Record, frozen=True, kw_only=True):
    """The targets of a regression have lost their fractions in a cast to whole numbers."""

    loss: str
    least: float  # before the cast
    most: float
    num_values: int
    cast: Frame | None = None
    used: Frame | None = None


class OneOrder(Record, frozen=True, kw_only=True):
    """What a model was given was put into another order, and what it is compared with was not."""

    length: int
    num_calls: int
    is_sorted: bool = False
    made: Frame | None = None  # the order
    taken: Frame | None = None  # the inputs in this order
    used: Frame | None = None


class AgreeingAdversaries(Record, frozen=True, kw_only=True):
    """Two losses of a discriminator have the same label, which must be opposites."""

    is_generator: bool  # the other loss trains the generator; else it is that of real examples
    label: float
    num_calls: int
    fake: Frame | None = None  # the loss of what the generator made
    other: Frame | None = None


class ExchangedArguments(Record, frozen=True, kw_only=True):
    """A loss was given its labels as the input, and the scores of the model as the target."""

    loss: str
    num_calls: int
    made: Frame | None = None  # the scores
    used: Frame | None = None


class WeightsOfFrequency(Record, frozen=True, kw_only=True):
    """A loss weighs classes up that are frequent already."""

    loss: str
    is_positive: bool  # `pos_weight`, of the class 1 against the class 0
    frequent: int  # the class that most labels have
    frequent_share: float  # of the labels
    frequent_weight: float
    rare: int
    rare_share: float
    rare_weight: float
    num_labels: int
    layer: Frame | None = None  # where the loss was made, if it is a module
    made: Frame | None = None  # the weights
    used: Frame | None = None


class LabelRuns(Record, frozen=True, kw_only=True):
    """Nearly all labels of a batch are one class, and the classes follow each other in runs of batches."""

    loss: str
    num_calls: int
    num_kinds: int  # of the classes that most labels of a batch had
    num_runs: int
    share: float  # of that class in a batch, on average
    labels: int  # of a batch
    loader: Frame | None = None  # where a DataLoader was made that takes the examples as they come
    made: Frame | None = None
    used: Frame | None = None


class FarTargets(Record, frozen=True, kw_only=True):
    """The mean of what a model returns is a small part of that of its targets, and comes no nearer at this pace."""

    loss: str  # or the difference of the two: "sub"
    target: float  # the mean of the targets, over all calls
    first: float  # the mean of the output, in the first call
    last: float
    num_calls: int
    made: Frame | None = None
    used: Frame | None = None


class UnreadFlag(Record, frozen=True, kw_only=True):
    """A target adds the value of what follows in all rows, and nothing reads a flag of the same batch."""

    name: str  # the variable
    num_ends: int  # rows in which it is 1
    num_rows: int
    num_calls: int
    made: Frame | None = None  # the flag
    added: Frame | None = None  # the target
    used: Frame | None = None


class TurnedApart(Record, frozen=True, kw_only=True):
    """Inputs and targets were flipped, turned or shifted by draws of their own."""

    num_inputs: int  # such calls behind the inputs, in the last batch in which they differ
    num_targets: int
    num_apart: int  # batches in which they differ
    num_calls: int
    first: Frame | None = None  # the line that turns the inputs
    second: Frame | None = None
    used: Frame | None = None


class FewDrawn(Record, frozen=True, kw_only=True):
    """A sampler draws from the first examples only, as it has fewer weights than there are examples."""

    num_weights: int
    num_examples: int | None  # None: not known, but more than that are in a batch
    sampler: Frame | None = None
    loader: Frame | None = None


class SeveralLabels(Record, frozen=True, kw_only=True):
    """cross_entropy was given several ones in a row, where it wants the probabilities of classes."""

    num_rows: int
    num_several: int  # rows with more than one
    most: int  # ones of a row
    made: Frame | None = None
    used: Frame | None = None


class HiddenIgnored(Record, frozen=True, kw_only=True):
    """A loss ignores exactly the tokens that were hidden from the model, and counts those that it is given."""

    num_calls: int
    token: int  # that stands for what is hidden
    looked_up: Frame | None = None
    used: Frame | None = None


class CloseScores(Record, frozen=True, kw_only=True):
    """A cross entropy gets cosines, which differ by too little for it to fall."""

    num_classes: int
    floor: float  # of the loss
    made: Frame | None = None
    used: Frame | None = None


class BatchesReadOnce(Record, frozen=True, kw_only=True):
    """A loop over epochs goes through an iterator of batches that was made before it, and can be read once."""

    name: str  # of the variable
    value: str  # what it was assigned: "zip(xs, ys)"
    made: Frame | None = None
    loop: Frame | None = None
    outer: Frame | None = None
