"""Where the program made its modules, DataLoaders and schedulers, for findings whose cause is one of their arguments.

NOTE [The line that made it]
`nn.CrossEntropyLoss()` says what a loss ignores, and `nn.LSTM(8, 16)` which axis is time, but what goes wrong shows
where they are called. So the line of each constructor is noted: that of the call, outside of the `__init__` of its own
class and of the classes that this one is derived from. Which layer of torch's has called a function is on the stack,
below the program's line. Two layers that call one function on the same line are told apart only where one call of it
is meant.
"""

from collections.abc import Iterable
from types import FrameType
from typing import Any

from torch import nn
from torch.utils.data import DataLoader, SequentialSampler

from gradinspect.recording.frames import FrameTable, is_user_file
from gradinspect.recording.names.variables import isinstance_safely, local_variables
from gradinspect.torch_api.data.loaders import NEXT_BATCH, batches_of, sampler_of
from gradinspect.torch_api.weak import HiddenRef

MOST_OBJECTS = 20_000  # more of them are made anew all the time
MOST_CALLS = 20_000  # of layers
_SEVERAL = -1  # layers on one line
_MOST_FRAMES = 16  # from a function of torch up to the program


class Origins:
    """Knows which lines made objects. NOTE [The line that made it]."""

    def __init__(self, frames: FrameTable) -> None:
        """Share the numbers of frames."""
        self._frames = frames
        self._made: dict[int, tuple[HiddenRef, int | None]] = {}  # by the id of what was made
        self._num_passed_over = 0  # since it was full
        self._loaders: list[HiddenRef] = []
        self._of_calls: dict[int, int] = {}  # the frame that made the layer, by the call
        self._of_batches: dict[int, int] = {}  # the frame that made the DataLoader, by the call that made a batch
        self._of_lines: dict[tuple[int | None, str], int] = {}  # the same of a layer, by the line and the function
        self._in_order = set[int]()  # calls that put together what a DataLoader took as it comes
        self._is_users: dict[str, bool] = {}  # by the name of the file

    def note(self, made: Any, frame: FrameType | None) -> None:
        """Note that a constructor has returned, given the frame that called it."""
        while frame is not None and frame.f_code.co_name == "__init__" and _first(frame) is made:
            frame = frame.f_back
        if len(self._made) >= MOST_OBJECTS:
            self._forget()
        if len(self._made) < MOST_OBJECTS:
            self._made[id(made)] = HiddenRef(made), self._frames.number_of(frame)
            if isinstance(made, DataLoader):
                self._loaders = [*(one for one in self._loaders if one() is not None), HiddenRef(made)]

    def _forget(self) -> None:
        """Forget what is gone; as long as all of it is there, look again each time twice as many were passed over."""
        self._num_passed_over += 1
        if self._num_passed_over.bit_count() == 1:
            self._made = {key: one for key, one in self._made.items() if one[0]() is not None}
        if len(self._made) < MOST_OBJECTS:
            self._num_passed_over = 0

    def of(self, made: Any) -> int | None:
        """Return the frame that made an object."""
        found = self._made.get(id(made))
        return found[1] if found is not None and found[0]() is made else None

    def called(self, function: str, call: int, number: int | None, frame: FrameType | None) -> bool:
        """Note which layer calls a function of torch; return whether one does, as far as is known.

        Args:
            function: Its short name.
            call: The number of the call among all of them.
            number: The frame of the program.
            frame: Where the stack begins.
        """
        if len(self._of_calls) >= MOST_CALLS:
            return True
        layer = self._layer_in(frame)
        made = self.of(layer)
        if made is not None:
            self._of_calls[call] = made
        made = _SEVERAL if made is None else made
        if self._of_lines.setdefault((number, function), made) != made:
            self._of_lines[number, function] = _SEVERAL
        return layer is not None

    def loaded(self, call: int, frame: FrameType | None) -> None:
        """Note which DataLoader is making a batch by a call."""
        iterator = iterator_in(frame) if len(self._of_batches) < MOST_CALLS else None
        made = None if iterator is None else self.of(self.loader_of(iterator))
        if made is not None:
            self._of_batches[call] = made
            if type(sampler_of(iterator)) is SequentialSampler:
                self._in_order.add(call)

    def of_call(self, call: int) -> int | None:
        """Return the frame that made the layer which made a call."""
        return self._of_calls.get(call)

    def of_batch(self, calls: Iterable[int]) -> int | None:
        """Return the frame that made the DataLoader which put together a batch, by some of the calls behind it."""
        found = {self._of_batches[call] for call in calls if call in self._of_batches}
        return next(iter(found)) if len(found) == 1 else None

    def takes_in_order(self, calls: Iterable[int]) -> bool:
        """Return whether a DataLoader takes the examples as they are in its dataset, by the calls behind a batch."""
        return not self._in_order.isdisjoint(calls)

    def of_line(self, number: int | None, function: str) -> int | None:
        """Return the frame that made the one layer which calls a function on a line."""
        made = self._of_lines.get((number, function), _SEVERAL)
        return None if made == _SEVERAL else made

    def loader_of(self, iterator: object) -> Any:
        """Return the DataLoader of an iterator."""
        batches = None if iterator is None else batches_of(iterator)
        for reference in self._loaders:
            loader = reference()
            if loader is not None and batches is not None and any(one is batches for one in _orders(loader)):
                return loader
        return None

    def _layer_in(self, frame: FrameType | None) -> Any:
        """Return the innermost module of torch's that is running between a function of torch and the program."""
        for _ in range(_MOST_FRAMES):
            if frame is None:
                return None
            file = frame.f_code.co_filename
            if file not in self._is_users:
                self._is_users[file] = is_user_file(file)
            if self._is_users[file]:
                return None
            if frame.f_code.co_name == "forward":
                module = local_variables(frame).get("self")
                if isinstance_safely(module, (nn.Module,)):
                    return module
            frame = frame.f_back
        return None


def iterator_in(frame: FrameType | None) -> object | None:
    """Find the iterator of a DataLoader that is making a batch."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        if frame.f_code is NEXT_BATCH:
            return local_variables(frame).get("self")
        frame = frame.f_back
    return None


def _orders(loader: Any) -> list[Any]:
    return [one for name in ("batch_sampler", "sampler") if (one := vars(loader).get(name)) is not None]


def _first(frame: FrameType) -> object:
    """Return the value of the first argument of a frame's function."""
    names = frame.f_code.co_varnames
    return local_variables(frame).get(names[0]) if names else None
