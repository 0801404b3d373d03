"""Assign nodes to module calls, by the recorder's windows."""

from collections import Counter
from collections.abc import Sequence

import torch

from gradinspect.graph import THREAD_SPAN, ModuleCall
from gradinspect.recording.names.names import Names
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.threads import NOWHERE, ModuleWindow
from gradinspect.torch_api.nodes import UNKNOWN_NR


def assign_modules(
    recorder: Recorder, names: Names, sequence_nrs: Sequence[int]
) -> tuple[list[int | None], tuple[ModuleCall, ...]]:
    """Assign each node to the innermost module call whose window contains its sequence number.

    Args:
        recorder: The recording of the forward pass.
        names: Paths of the modules.
        sequence_nrs: Of the nodes; descending, AccumulateGrad last, if all are of the recorded thread.

    Returns:
        For each node an index into the calls, or None; and the calls that have a node, callers first.
    """
    of_nodes = _innermost(recorder, sequence_nrs)
    used: set[int] = set()
    of_nodes = [place if place == NOWHERE else _call(recorder, place) for place in of_nodes]
    for place in of_nodes:
        while place != NOWHERE and place not in used:
            used.add(place)
            place = _caller(recorder, place)  # noqa: PLW2901  # walk up the callers
    index = {place: position for position, place in enumerate(sorted(used))}
    index[NOWHERE] = NOWHERE
    calls: Counter[int | str] = Counter()  # of a module, or of all that have no path of their own, but the same one
    paths = PathsOfCalls(recorder, names)
    records = []
    for place in sorted(used):
        module = recorder.without_wrapper(_window(recorder, place).module)
        path = paths.of(place)
        same = path if recorder.module_path(module, names) is None else module
        calls[same] += 1
        parent = index[_caller(recorder, place)]
        records.append(
            ModuleCall(
                path=path,
                class_name=recorder.class_name(module),
                call=calls[same],
                parent=None if parent == NOWHERE else parent,
            )
        )
    return [None if place == NOWHERE else index[place] for place in of_nodes], tuple(records)


class PathsOfCalls:
    """Paths of the modules that are called: of one that forward makes, that of the call it is made in, and its class.

    `layers.0.attn.Linear`; a second one of that class in the same call is `layers.0.attn.Linear#2`, if it has
    parameters: else nothing needs to be told apart.
    """

    def __init__(self, recorder: Recorder, names: Names) -> None:
        """Share what has seen the calls, and the paths of modules."""
        self._recorder, self._names = recorder, names
        self._made: dict[int, dict[int, int]] = {}  # thread -> module without a path -> its number in its call

    def of(self, place: int) -> str:
        """Return the path of the module of a call, given its place: `Recorder.running_call`."""
        parts = []
        while place != NOWHERE:
            path = self._recorder.module_path(_window(self._recorder, place).module, self._names)
            caller = _caller(self._recorder, place)
            parts.append(self._made_name(place, caller) if path is None else path)
            place = NOWHERE if path is not None else caller
        return ".".join(filter(None, reversed(parts)))

    def own(self, place: int) -> str:
        """Return the path of the module itself; of one without, its class."""
        path = self._recorder.module_path(_window(self._recorder, place).module, self._names)
        return self._made_name(place, _caller(self._recorder, place)) if path is None else path

    def _made_name(self, place: int, caller: int) -> str:
        module = _window(self._recorder, place).module
        class_name = self._recorder.class_name(module)
        number = 1 if caller == NOWHERE else self._numbers(place // THREAD_SPAN).get(module, 1)
        return class_name if number == 1 else f"{class_name}#{number}"

    def _numbers(self, thread: int) -> dict[int, int]:
        """Count the modules without a path, of each class in each call."""
        if thread not in self._made:
            seen: Counter[tuple[int, str]] = Counter()
            numbers = self._made[thread] = {}
            for place, window in enumerate(self._recorder.others.record_of(thread).module_windows):
                if window.module in numbers or not self._needs_number(window.module):
                    continue
                key = _caller(self._recorder, thread * THREAD_SPAN + place), self._recorder.class_name(window.module)
                seen[key] += 1
                numbers[window.module] = seen[key]
        return self._made[thread]

    def _needs_number(self, module: int) -> bool:
        has_parts = module in self._recorder.kept_names.with_parts
        return has_parts and self._recorder.module_path(module, self._names) is None


def name_parameters_of_calls(recorder: Recorder, names: Names, leaves: Sequence[torch.Tensor]) -> None:
    """Name parameters of modules that forward makes, which are part of no model, after the call that makes them."""
    nameless = {id(leaf) for leaf in leaves if names.of_leaf(leaf).name is None}
    if not nameless:
        return
    paths = PathsOfCalls(recorder, names)
    places: dict[int, int] = {}
    for place, window in enumerate(recorder.module_windows):
        places.setdefault(window.module, place)
    for tensor, module, name in recorder.kept_names.own_of(nameless):
        if module in places:
            names.add_leaf(tensor, f"{paths.of(places[module])}.{name}")


class CalledPaths:
    """Paths of modules within those that call them: `h.3.act` where `h.3` calls `h.0.act`, which the blocks share.

    So a block has what its own calls make, also of a module without a path, which was made in forward. One that has
    parameters keeps its own path, which is that of their gradients and states: what a loss calls is the model's head.
    """

    def __init__(self, recorder: Recorder, names: Names) -> None:
        """Share what has seen the calls, and the paths of modules."""
        self._recorder, self._names = recorder, names
        self._known: dict[int, str] = {}
        self._paths = PathsOfCalls(recorder, names)

    def of(self, place: int) -> str:
        """Return the path of a call, given its place: `Recorder.running_call`."""
        line = []  # of calls, from the inside
        place = _call(self._recorder, place)
        while place != NOWHERE and place not in self._known:
            line.append(place)
            place = _caller(self._recorder, place)
        for one in reversed(line):
            caller = _caller(self._recorder, one)
            self._known[one] = self._within(one, caller)
            place = one
        return self._known[place]

    def classes(self) -> dict[str, str]:
        """Return the class of each module that was called, by its own path and those that were asked for."""
        recorder, names = self._recorder, self._names
        called = [(recorder.module_path(number, names), number) for number in range(len(recorder.modules))]
        called += [(path, _window(recorder, place).module) for place, path in self._known.items()]
        return {path: recorder.class_name(number) for path, number in called if path}

    def _within(self, place: int, caller: int) -> str:
        path = self._paths.own(place)
        if caller == NOWHERE or self._has_parts_and_path(place):
            return path
        outer, own = self._known[caller], self._paths.own(caller)
        if not outer or not path:
            return path
        if path.startswith(f"{own}."):
            return outer + path[len(own) :]
        return f"{outer}.{path.rpartition('.')[2] if own else path}"

    def _has_parts_and_path(self, place: int) -> bool:
        module = self._recorder.without_wrapper(_window(self._recorder, place).module)
        has_parts = module in self._recorder.kept_names.with_parts
        return has_parts and self._recorder.module_path(module, self._names) is not None


def called_around(recorder: Recorder, place: int) -> set[int]:
    """Return the numbers of the modules whose calls a place is in, with its own: `Recorder.running_call`."""
    found = set()
    while place != NOWHERE:
        found.add(_window(recorder, place).module)
        place = _parent(recorder, place)
    return found


def _window(recorder: Recorder, place: int) -> ModuleWindow:
    thread, window = divmod(place, THREAD_SPAN)
    return recorder.others.record_of(thread).module_windows[window]


def _caller(recorder: Recorder, place: int) -> int:
    parent = _parent(recorder, place)
    return parent if parent == NOWHERE else _call(recorder, parent)


def _call(recorder: Recorder, place: int) -> int:
    """Return the call that a window belongs to: that of a compiled module is within that of its wrapper."""
    parent = _parent(recorder, place)
    if parent == NOWHERE:
        return place
    outer, module = _window(recorder, parent).module, _window(recorder, place).module
    is_wrapper = recorder.without_wrapper(outer) == module != outer
    return parent if is_wrapper else place


def _parent(recorder: Recorder, place: int) -> int:
    parent = _window(recorder, place).parent
    return NOWHERE if parent == NOWHERE else place - place % THREAD_SPAN + parent


def _innermost(recorder: Recorder, sequence_nrs: Sequence[int]) -> list[int]:
    """Find each node's innermost window, or NOWHERE: the number of the thread, and that of the window in it."""
    if all(number < THREAD_SPAN or number >= UNKNOWN_NR for number in sequence_nrs):
        return _innermost_of_own(recorder, sequence_nrs)
    found = [NOWHERE] * len(sequence_nrs)
    for number, sequence_nr in enumerate(sequence_nrs):
        place = recorder.others.place_of(sequence_nr) if sequence_nr < UNKNOWN_NR else None
        if place is not None:
            found[number] = place.thread * THREAD_SPAN + place.window
    return found


def _innermost_of_own(recorder: Recorder, sequence_nrs: Sequence[int]) -> list[int]:
    """Find the windows of nodes that the recorded thread made, in one pass over nodes and windows."""
    windows = recorder.module_windows
    found = [NOWHERE] * len(sequence_nrs)
    next_window = 0
    open_windows: list[int] = []
    for number in range(len(sequence_nrs) - 1, -1, -1):  # ascending sequence numbers
        sequence_nr = sequence_nrs[number]
        if sequence_nr >= UNKNOWN_NR:
            continue
        while next_window < len(windows) and windows[next_window].start <= sequence_nr:
            if windows[next_window].end > sequence_nr or windows[next_window].end == NOWHERE:
                open_windows.append(next_window)
            next_window += 1
        while open_windows and NOWHERE < windows[open_windows[-1]].end <= sequence_nr:
            open_windows.pop()
        if open_windows:
            found[number] = open_windows[-1]
    return found
