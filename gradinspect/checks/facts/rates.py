"""Facts about schedulers: what step() is given, and how often it is called."""

from typing import Literal

from gradinspect.graph import Frame, Record


class ProgressRefused(Record, frozen=True, kw_only=True):
    """ReduceLROnPlateau took what got better for no progress, as it looks for the other direction."""

    mode: Literal["min", "max"]
    metric: str  # as the program writes it
    num_records: int  # values better than all before, none of which it took for progress
    first: float
    last: float  # the best of them
    optimizer: str
    scheduled: Frame | None = None
    made: Frame | None = None  # the scheduler


class OtherPace(Record, frozen=True, kw_only=True):
    """A schedule counts epochs and is stepped for each batch, or the other way round."""

    counts: Literal["epochs", "batches"]
    scheduler: str  # its class
    length: int  # of the schedule
    given: str  # as the program writes it: `T_max=epochs`
    num_scheduled: int
    num_steps: int  # of the optimizer
    optimizer: str
    scheduled: Frame | None = None
    made: Frame | None = None
    num_epochs: int = 0  # that a loop counts to, if all drops are early in it
    epoch: int = 0  # the pass of this loop in which the last drop was
    loop: Frame | None = None


class PlateauOfBatches(Record, frozen=True, kw_only=True):
    """ReduceLROnPlateau is told the loss of each batch, with a patience for epochs."""

    loss: str  # as the program writes it
    patience: int
    num_told: int
    optimizer: str
    scheduled: Frame | None = None
    made: Frame | None = None
