"""Facts about axes that were taken for each other."""

from typing import Literal

from gradinspect.graph import Frame, Record

Move = Literal["moved", "split", "merged"]


class MovedByView(Record, frozen=True, kw_only=True):
    """A view whose result has an axis of its input at another place, although a view moves no elements."""

    kind: Move  # heads that were split off or merged, or another order of the same axes
    before: tuple[int, ...]
    after: tuple[int, ...]
    num_calls: int
    viewed: Frame | None = None


class FlattenedApart(Record, frozen=True, kw_only=True):
    """The two sides of a loss were flattened from axes in opposite order."""

    first: tuple[int, ...]  # the shape of what was flattened for the scores, without the classes
    second: tuple[int, ...]  # that of the targets
    num_calls: int
    scores: Frame | None = None
    targets: Frame | None = None
    used: Frame | None = None


class SpreadAlongRow(Record, frozen=True, kw_only=True):
    """Values of a table, one for each example, that a product spreads along the last axis, and not the first."""

    op: str  # "mul"
    shape: tuple[int, ...]  # of the other factor
    num_calls: int
    looked_up: Frame | None = None
    used: Frame | None = None


class BatchPositions(Record, frozen=True, kw_only=True):
    """Entries of a table of positions that are added along the axis that an attention takes for the batch."""

    shape: tuple[int, ...]  # of what they are added to
    table: tuple[int, ...]  # of the entries
    num_calls: int
    added: Frame | None = None
    used: Frame | None = None  # the attention


class SamePlaces(Record, frozen=True, kw_only=True):
    """A lookup whose index has one value, in a table with an entry for each place of a sequence."""

    value: int  # in the last call
    num_entries: int  # of the table
    tokens: tuple[int, ...]  # shape of what is looked up beside it
    num_calls: int
    made: Frame | None = None  # the index
    looked_up: Frame | None = None


class AddedMask(Record, frozen=True, kw_only=True):
    """A mask of 0 and 1 is added to scores that a softmax gets, or these are filled with a number near 0."""

    num_calls: int
    filled: float | None = None  # with what; None where a mask was added
    made: Frame | None = None
    used: Frame | None = None


class SwappedAverage(Record, frozen=True, kw_only=True):
    """A moving average takes nearly all of the new value in each step."""

    weight: float  # of the new value
    num_times: int
    updated: Frame | None = None


class BatchSum(Record, frozen=True, kw_only=True):
    """The sum over a whole batch is added to the value of each of its examples."""

    shape: tuple[int, ...]  # of what was summed
    num_calls: int
    summed: Frame | None = None
    used: Frame | None = None


class OtherAxis(Record, frozen=True, kw_only=True):
    """Weights of attention add up to one along the queries, and are multiplied as if they did along the keys."""

    shape: tuple[int, ...]
    num_calls: int
    applied: Frame | None = None
    used: Frame | None = None


class RunsAlongBatch(Record, frozen=True, kw_only=True):
    """An RNN or an attention that takes the examples of a batch for the steps of a sequence."""

    op: str  # the class of the RNN; empty for an attention
    shape: tuple[int, int]  # examples and steps
    num_calls: int
    is_loaded: bool  # by a DataLoader, and not by an index that was drawn
    layer: Frame | None = None  # where it was made
    batch: Frame | None = None  # where the examples were put together
    ran: Frame | None = None


class MixedPixels(Record, frozen=True, kw_only=True):
    """Images of [channels, rows, columns] whose elements lie as those of [rows, columns, channels] do."""

    shape: tuple[int, ...]  # of one
    num_calls: int
    viewed: Frame | None = None  # the only line that may have given them this shape
    used: Frame | None = None
