"""What is alive at one moment of a step, by what it is for: a lower bound of the peak."""

from typing import Literal, TypeAlias

from gradinspect.analyses.memory.step import StorageKind
from gradinspect.graph import Record

Moment: TypeAlias = Literal["backward begins", "backward ends"]


class AliveBytes(Record, frozen=True, kw_only=True):
    """What was alive on one device."""

    at: Moment
    on: str  # the device: "cuda:0"
    by_kind: dict[StorageKind, int]  # each storage is of one kind; temporary ones of the program are not known

    @property
    def num_bytes(self) -> int:
        """All of it."""
        return sum(self.by_kind.values())
