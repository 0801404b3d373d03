"""Variables of the program that hold memory at the peak which nothing else needs.

What comes in: the frames of backward calls, and the ledger. What goes out: which variables can be deleted after which
line, and which hold memory of earlier steps but are read again. Whether deleting one lowers the peak shows a run.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from gradinspect.analyses.memory.step import StorageKind
from gradinspect.analyses.planning.changes import DeleteVariable, HeldVariable
from gradinspect.analyses.planning.deletions import deletable_after
from gradinspect.observers.memory.storage_ledger import Allocation, Ledger
from gradinspect.recording.frames import is_own_file, line_at, short_file_name, user_frames
from gradinspect.recording.names.variables import LARGEST_CONTAINER, isinstance_safely, own_variables
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.source_text import line_of, lines_of
from gradinspect.recording.values.storages import plain_tensors
from gradinspect.torch_api.patching.classes import is_one_of

MIN_SHARE = 0.01  # of the peak
MAX_VARIABLES = 4
_OF_THE_PROGRAM: frozenset[StorageKind] = frozenset(("parameter", "buffer", "optimizer_state", "gradient"))


class _Seen(NamedTuple):
    """A variable, where a frame shows it."""

    file: str
    line: int  # which ran when it was seen
    name: str


class HeldVariables:
    """Notes what variables hold whenever backward is about to start."""

    def __init__(self, base_folder: Path) -> None:
        """Start empty."""
        self._base_folder = base_folder
        self._allocations: dict[_Seen, dict[Allocation, None]] = defaultdict(dict)

    def note(
        self, frame: FrameType | None, allocations_of: Callable[[Iterable[torch.Tensor]], list[Allocation]]
    ) -> None:
        """Look at the variables of the program's own functions that are running."""
        for user in user_frames(frame):
            file = user.f_code.co_filename
            if is_own_file(file) and self._is_below(file):
                for name, value in list(own_variables(user).items()):
                    allocations = allocations_of(_tensors_in(value))
                    if allocations:
                        self._allocations[_Seen(file, line_at(user), name)].update(dict.fromkeys(allocations))

    def found(self, ledger: Ledger) -> tuple[tuple[DeleteVariable, ...], tuple[HeldVariable, ...]]:
        """Return those that can be deleted, and those that cannot; what holds most at the peak comes first."""
        if ledger.peak is None:
            return (), ()
        alive = {allocation for allocation in ledger.alive_at_peak() if allocation.kind not in _OF_THE_PROGRAM}
        deletions: list[DeleteVariable] = []
        held: list[HeldVariable] = []
        for seen, allocations in self._allocations.items():
            holds = [allocation for allocation in allocations if allocation in alive]
            if sum(allocation.num_bytes for allocation in holds) < MIN_SHARE * ledger.peak.num_bytes:
                continue
            deletion = self._deletion(seen, holds)
            old = [
                allocation
                for allocation in holds
                if allocation.maker.step < ledger.peak.maker.step and allocation.maker.step
            ]
            if deletion is not None:
                deletions.append(deletion)
            elif sum(allocation.num_bytes for allocation in old) >= MIN_SHARE * ledger.peak.num_bytes:
                held.append(self._held(seen, old))
        deletions.sort(key=lambda one: -one.num_bytes)
        held.sort(key=lambda one: -one.num_bytes)
        return tuple(deletions[:MAX_VARIABLES]), tuple(held[:MAX_VARIABLES])

    def _is_below(self, file: str) -> bool:
        """Return whether a file is found again by its name in the record."""
        return (self._base_folder / short_file_name(file, self._base_folder)).absolute() == Path(file).absolute()

    def _deletion(self, seen: _Seen, allocations: list[Allocation]) -> DeleteVariable | None:
        spot = deletable_after("".join(lines_of(seen.file)), seen.line, seen.name)
        if spot is None:
            return None
        return DeleteVariable(
            name=seen.name,
            file=short_file_name(seen.file, self._base_folder),
            line=spot.line,
            indent=spot.indent,
            code=line_of(seen.file, spot.line),
            num_bytes=sum(allocation.num_bytes for allocation in allocations),
        )

    def _held(self, seen: _Seen, allocations: list[Allocation]) -> HeldVariable:
        return HeldVariable(
            name=seen.name,
            place=f"{short_file_name(seen.file, self._base_folder)}:{seen.line}",
            num_bytes=sum(allocation.num_bytes for allocation in allocations),
            num_storages=len(allocations),
        )


def _tensors_in(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors of a variable, also those in an output of a model, without running code of the program."""
    if isinstance_safely(value, (torch.nn.Module, torch.optim.Optimizer, type)):
        return
    if is_one_of(value, (list, tuple, dict, set)) and len(value) > LARGEST_CONTAINER:  # type: ignore[arg-type]  # it has one
        return
    yield from plain_tensors(value)
    try:
        outputs = outputs_in(value)
    except Exception:  # an object of the user that raises when inspected
        return
    yield from (output.value for output in outputs if isinstance(output.value, torch.Tensor))
