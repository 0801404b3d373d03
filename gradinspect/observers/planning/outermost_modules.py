"""The outermost modules that a program calls, in the order of their first calls, and what the program calls them."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import ReferenceType, ref

from torch import nn

from gradinspect.analyses.planning.changes import NamedPlace
from gradinspect.analyses.structure.call_names import OUTERMOST, shown_path, without_wrappers
from gradinspect.observers.planning.places import Called, calls_of, place_of
from gradinspect.recording.names.names import all_parameters
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.threads import NOWHERE


class OutermostModules:
    """Collects them, while the recorder is active."""

    def __init__(self, recorder: Recorder) -> None:
        """Start with none."""
        self._recorder = recorder
        self._modules: list[ReferenceType[nn.Module]] = []
        self._numbers: dict[int, int] = {}
        self._calls: list[tuple[Called, ...]] = []  # of each, its first call

    def entered(self, module: nn.Module) -> int | None:
        """Note a call that begins; return the number of an outermost module that is called for the first time."""
        if not self.is_entering or self.number_of(module) is not None:
            return None
        number = self._numbers[id(module)] = len(self._modules)
        self._modules.append(ref(module))
        self._calls.append(calls_of(module, sys._getframe(1)))
        return number

    @property
    def is_entering(self) -> bool:
        """Whether a call of an outermost module begins."""
        windows = self._recorder.module_windows
        return bool(windows) and windows[-1].parent == NOWHERE

    def number_of(self, module: nn.Module) -> int | None:
        """Return the number of a module; None if it has never been an outermost one."""
        number = self._numbers.get(id(module))
        return number if number is not None and self._modules[number]() is module else None

    def alive(self) -> Iterator[tuple[int, nn.Module]]:
        """Yield those that are still there."""
        for number, reference in enumerate(self._modules):
            module = reference()
            if module is not None:
                yield number, module

    def prefixes_of(self, number: int) -> Callable[[str], str]:
        """Return what stands before the path of a module in this one on screens. NOTE [One spelling of a name]."""
        models = [one for one, module in self.alive() if any(True for _ in all_parameters(module))]
        name = next((without_wrappers(called.name) for called in self._calls[number]), OUTERMOST)

        def prefix(path: str) -> str:
            shown = without_wrappers(path)
            is_whole = len(models) > 1 or not shown
            return f"{name}." if is_whole else shown_path(shown, name).removesuffix(shown)

        return prefix

    def roots(self, base_folder: Path) -> tuple[NamedPlace, ...]:
        """Describe them all."""
        return tuple(place_of(calls, base_folder, "model") for calls in self._calls)
