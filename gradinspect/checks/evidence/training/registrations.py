"""When and where modules and parameters became part of their modules, and what they replaced."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple
from weakref import ReferenceType

from torch import nn

from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.modules import own_children, own_parameters
from gradinspect.torch_api.weak import HiddenRef


class Registration(NamedTuple):
    """A module or parameter was put into a module."""

    member: ReferenceType[Any]
    order: int
    frame: int | None
    is_replacement: bool  # there was another one under this name
    is_again: bool  # which the same line had put there


@dataclass
class Registrations:
    """Notes registrations. torch calls it through its global hooks."""

    recorder: Recorder
    order: int = 0
    _containers: dict[int, tuple[ReferenceType[Any], str]] = field(default_factory=dict)  # with the names of attributes
    _latest: dict[int, Registration] = field(default_factory=dict)  # by the id of the member
    _first: dict[int, Registration] = field(default_factory=dict)
    _replaced: set[tuple[int, str, int | None]] = field(default_factory=set)  # ids of holders, names, frames
    _unfrozen: dict[int, Registration] = field(default_factory=dict)

    def module(self, holder: Any, name: str, module: Any, frame: FrameType | None) -> None:
        """Note that a module becomes a child of another."""
        if module is not None:
            self._note(module, own_children(holder).get(name), (id(holder), name), frame)
            if isinstance(module, nn.ModuleList | nn.Sequential):
                self._containers[id(module)] = HiddenRef(module), name

    def parameter(self, holder: Any, name: str, parameter: Any, frame: FrameType | None) -> None:
        """Note that a parameter becomes one of a module."""
        if parameter is not None:
            self._note(parameter, own_parameters(holder).get(name), (id(holder), name), frame)

    def containers(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield the lists of modules that became part of another module, with the names of their attributes."""
        for reference, name in self._containers.values():
            container = reference()
            if container is not None:
                yield name, container

    def of(self, member: Any) -> Registration | None:
        """Return the last registration of a module or parameter."""
        return self._of(member, self._latest)

    def first_of(self, member: Any) -> Registration | None:
        """Return the first one."""
        return self._of(member, self._first)

    def unfreeze(self, parameter: Any, frame: FrameType | None) -> None:
        """Note that a parameter begins to require grad, after an optimizer has stepped."""
        self.order += 1
        number = self.recorder.frames.number_of(frame)
        self._unfrozen[id(parameter)] = Registration(
            HiddenRef(parameter), self.order, number, is_replacement=False, is_again=False
        )

    def unfrozen(self, parameter: Any) -> Registration | None:
        """Return when a parameter began to require grad."""
        return self._of(parameter, self._unfrozen)

    def _of(self, member: Any, known: dict[int, Registration]) -> Registration | None:
        found = known.get(id(member))
        return found if found is not None and found.member() is member else None

    def _note(self, member: Any, before: Any, place: tuple[int, str], frame: FrameType | None) -> None:
        self.order += 1
        number = self.recorder.frames.number_of(frame)
        is_replacement = before is not None and before is not member
        is_again = is_replacement and (*place, number) in self._replaced
        if is_replacement:
            self._replaced.add((*place, number))
        new = Registration(HiddenRef(member), self.order, number, is_replacement, is_again)
        if self._of(member, self._first) is None:
            self._first[id(member)] = new
        self._latest[id(member)] = new
