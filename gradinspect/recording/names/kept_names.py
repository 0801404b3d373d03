"""Names of the parts of models that no longer exist when the graph is recorded.

A function that returns `model(x).loss` keeps the graph and drops the model. Its parameters stay alive in the graph, but
their names are lost. So the names are read when the outermost call of a model first ends, and kept with weak
references: no tensor or module lives longer because of it.

A module that is made in the forward pass of another one is part of no model, and gone when that returns. So the names
of its own parameters are read when it is called first.
"""

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple
from weakref import ReferenceType, ref

import torch
from torch import nn

from gradinspect.recording.names.names import DeletedModel, Member, members_of, named_modules, unwrapped_module
from gradinspect.torch_api.modules import own_children, own_parameters
from gradinspect.torch_api.weak import HiddenTensorRef

FEW = 64  # models kept without checking whether anything of them is still alive
FEW_OWN = 4096  # parameters, as above


class OwnParameter(NamedTuple):
    """A parameter of a called module itself."""

    module: int  # the number of the module
    name: str
    tensor: HiddenTensorRef


class _Noted(NamedTuple):
    class_name: str
    model: "ReferenceType[nn.Module]"
    members: tuple[tuple[Member, HiddenTensorRef], ...]  # without their tensors
    paths: dict[int, str]


class KeptNames:
    """Keeps the names of models, and nothing else."""

    def __init__(self) -> None:
        """Start empty."""
        self._noted: list[_Noted] = []
        self._limit = FEW
        self._own: list[OwnParameter] = []
        self.with_parts: set[int] = set()  # numbers of called modules that have parameters, or modules inside
        self._own_limit = FEW_OWN

    def note(self, called: nn.Module, numbers: Mapping[int, int]) -> None:
        """Read the names of a model.

        Args:
            called: The outermost module of a call.
            numbers: `id` of each called module -> its number.
        """
        model = unwrapped_module(called)
        self._noted.append(
            _Noted(
                class_name=type(model).__name__,
                model=ref(model),
                members=tuple(
                    (member._replace(tensor=None), HiddenTensorRef(member.tensor))
                    for member in members_of(model)
                    if isinstance(member.tensor, torch.Tensor)
                ),
                paths={numbers[id(part)]: path for path, part in named_modules(model) if id(part) in numbers},
            )
        )
        if len(self._noted) > self._limit:
            self._noted = [noted for noted in self._noted if noted.model() is not None or any(_alive(noted))]
            self._limit = max(2 * len(self._noted), FEW)

    def note_own(self, called: nn.Module, number: int) -> None:
        """Read the names of a module's own parameters, when it is called first."""
        parameters = own_parameters(called)
        if parameters or own_children(called):
            self.with_parts.add(number)
        self._own += [
            OwnParameter(number, name, HiddenTensorRef(tensor))
            for name, tensor in parameters.items()
            if isinstance(tensor, torch.Tensor)
        ]
        if len(self._own) > self._own_limit:
            self._own = [one for one in self._own if one.tensor() is not None]
            self._own_limit = max(2 * len(self._own), FEW_OWN)

    def own_of(self, wanted: Container[int]) -> Iterator[tuple[torch.Tensor, int, str]]:
        """Yield those of some tensors, given by `id`, that a called module has, with its number and their names."""
        for one in self._own:
            tensor: torch.Tensor | None = one.tensor()
            if tensor is not None and id(tensor) in wanted:
                yield tensor, one.module, one.name

    def drop_tensors(self) -> None:
        """Refer to no tensor of a model that is alive: afterwards, torch would refuse to swap it.

        Nothing but a graph holds those of the others, which nobody swaps.
        """
        self._noted = [noted if noted.model() is None else noted._replace(members=()) for noted in self._noted]
        self._own = []

    def path_of(self, number: int) -> str | None:
        """Return the path of a called module, even if its model is gone since the names were read."""
        return next((noted.paths[number] for noted in reversed(self._noted) if number in noted.paths), None)

    def gone(self) -> list[DeletedModel]:
        """List the models that are gone, latest first."""
        return [
            DeletedModel(noted.class_name, list(_alive(noted)), noted.paths)
            for noted in reversed(self._noted)
            if noted.model() is None
        ]


def _alive(noted: _Noted) -> Iterator[Member]:
    for member, reference in noted.members:
        tensor: torch.Tensor | None = reference()
        if tensor is not None:
            yield member._replace(tensor=tensor)
