"""How much of earlier iterations is still alive at each backward call, and what that means."""

from itertools import pairwise
from typing import Literal, TypeAlias

from gradinspect.graph import CallKind, Record

HeldBy: TypeAlias = Literal["variable", "graph", "gradient", "nothing"]


class Iteration(Record, frozen=True, kw_only=True):
    """What was alive when a backward call began. Bytes are of saved storages, without parameters."""

    number: int  # of the backward call
    place: str  # "train.py:20"
    live_nodes: int
    live_bytes: int
    old_nodes: int  # of those, made before the previous backward call
    old_bytes: int


class Holder(Record, frozen=True, kw_only=True):
    """What keeps nodes of earlier iterations alive at the last backward call."""

    held_by: HeldBy
    name: str = ""  # "losses[*]", "fc.weight.grad"
    num_tensors: int
    num_nodes: int
    num_bytes: int
    stored_at: tuple[str, ...] = ()  # "train.py:22  losses.append(loss)"
    made_at: str | None = None


class Growth(Record, frozen=True, kw_only=True):
    """Several iterations of one program."""

    source: str
    kind: CallKind = "backward"  # of the calls that end an iteration
    asked: int  # requested iterations
    iterations: tuple[Iteration, ...]
    holders: tuple[Holder, ...]

    @property
    def grows(self) -> bool:
        """Whether each iteration leaves more behind than the one before, after the first call.

        Two losses in turn leave different numbers behind: each line is compared with itself.
        """
        old = [[iteration.old_nodes for iteration in alike] for alike in self._alike_after_first()]
        return self.can_tell and all(later > earlier for each in old for earlier, later in pairwise(each))

    @property
    def can_tell(self) -> bool:
        """Whether there are two calls after the first to compare."""
        return any(len(alike) > 1 for alike in self._alike_after_first())

    @property
    def nodes_per_iteration(self) -> float:
        """Nodes that an iteration leaves behind, on average after its first call."""
        return _slope([iteration.old_nodes for iteration in self._like_the_last()])

    @property
    def bytes_per_iteration(self) -> float:
        """Bytes that an iteration leaves behind, on average after its first call."""
        return _slope([iteration.old_bytes for iteration in self._like_the_last()])

    def _alike_after_first(self) -> list[list[Iteration]]:
        """Group the calls after the first by their lines; all together where each has its own."""
        by_place: dict[str, list[Iteration]] = {}
        for iteration in self.iterations[1:]:
            by_place.setdefault(iteration.place, []).append(iteration)
        is_each_apart = len({iteration.place for iteration in self.iterations}) == len(self.iterations)
        return [list(self.iterations[1:])] if is_each_apart else list(by_place.values())

    def _like_the_last(self) -> list[Iteration]:
        last = self.iterations[-1:]
        found = [iteration for iteration in self.iterations if iteration.place == last[0].place]
        return found if len(found) > 1 else list(self.iterations)


def _slope(values: list[int]) -> float:
    return (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.0
