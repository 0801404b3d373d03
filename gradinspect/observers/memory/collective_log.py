"""Note what a rank sends to others: which collective, how many bytes, and what ran then."""

from collections.abc import Callable
from typing import Any, NamedTuple

from gradinspect.observers.memory.storage_ledger import StorageMaker
from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.distributed.fake_ranks import collective_name, group_size, is_collective

MAX_SENT = 100_000
_OF_ONE_PART = {"scatter": 0, "gather": 1}  # which argument is each rank's part; only the root has the whole


class Sent(NamedTuple):
    """One collective."""

    op: str
    num_bytes: int
    group_size: int
    maker: StorageMaker


class CollectiveLog:
    """Lists collectives: its `add` is an `OperatorListener`.

    Args:
        maker: Says what runs now, given the operator's name and the backward node that runs.
        world_size: The size of a group that does not say its own.
    """

    def __init__(self, maker: Callable[[str, Any], StorageMaker], world_size: int) -> None:
        """Start with none."""
        self.sent: list[Sent] = []
        self._maker = maker
        self._world_size = world_size

    def add(self, func: Any, args: tuple[Any, ...], _kwargs: object, result: Any) -> None:
        """Note an operator that has run, if it is one."""
        if not is_collective(func) or len(self.sent) >= MAX_SENT:
            return
        name, size = collective_name(func), group_size(args) or self._world_size
        num_bytes = max(sum(tensor.nbytes for tensor in plain_tensors(part)) for part in (*args, result))
        if name in _OF_ONE_PART:
            num_bytes = size * sum(tensor.nbytes for tensor in plain_tensors(args[_OF_ONE_PART[name]]))
        self.sent.append(Sent(name, num_bytes, size, _in_its_step(self._maker(str(func), running_node()))))


def _in_its_step(maker: StorageMaker) -> StorageMaker:
    """Let what a module gathers before its first node belong to the step that begins with it."""
    if maker.call is None or maker.phase not in ("setup", "after step"):
        return maker
    return maker._replace(step=maker.step + 1, phase="forward")
