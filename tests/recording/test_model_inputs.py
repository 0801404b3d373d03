"""The tensors that models were given."""

import sys
from weakref import getweakrefs, ref

import torch
from torch import nn

from gradinspect.recording.model_inputs import FEW, MAX_NESTING, ModelInputs
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key


class Net(nn.Module):
    """Takes a batch and options."""

    def forward(self, batch: dict[str, object], *, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Make a tensor of its own."""
        self.own = torch.ones(3)
        return self.own


def test_arguments_of_the_outermost_call_are_from_outside() -> None:
    """In containers and as keywords; what the model makes for itself is not."""
    x, y, mask, other = (torch.ones(2) for _ in range(4))
    net = Net()
    with Recorder() as recorder:
        net({"x": x, "more": [(y,)], "name": "a"}, mask=mask)
    keys = recorder.inputs.storage_keys()

    assert keys == {storage_key(tensor) for tensor in (x, y, mask)}
    assert storage_key(other) not in keys
    assert storage_key(net.own) not in keys


def test_a_view_of_an_argument_has_its_memory() -> None:
    """A part of the batch is not what the model made for itself."""
    x = torch.ones(4)
    inputs = ModelInputs()
    inputs.note((x,), None)

    assert inputs.storage_keys() == {storage_key(x[1:])}


def test_containers_are_searched_to_a_depth() -> None:
    """One that contains itself ends somewhere."""
    x, y = torch.ones(1), torch.ones(1)
    deep: object = x
    for _ in range(MAX_NESTING - 2):
        deep = [deep]
    endless: list[object] = [y]
    endless.append(endless)
    too_deep: object = torch.ones(1)
    for _ in range(MAX_NESTING + 1):
        too_deep = {"in": too_deep}
    inputs = ModelInputs()
    inputs.note((deep, endless, too_deep), sys._getframe())

    assert inputs.storage_keys() == {storage_key(x), storage_key(y)}


def test_an_argument_does_not_live_longer() -> None:
    """Nor does the note of it fill the memory."""
    inputs = ModelInputs()
    kept = torch.ones(1)
    inputs.note((kept,), None)
    batches = [torch.ones(1) for _ in range(3)]
    inputs.note(batches, None)
    refs = [ref(batch) for batch in batches]
    del batches
    for _ in range(3 * FEW):
        inputs.note((torch.ones(1),), None)

    assert [one() for one in refs] == [None] * 3
    assert len(inputs._given) <= FEW
    assert inputs.storage_keys() == {storage_key(kept)}


def test_what_is_let_go_is_known_by_its_memory() -> None:
    """As long as anything shows it. No weak reference to a tensor is left, for torch would see it."""
    inputs = ModelInputs()
    kept, gone, shown = torch.ones(1), torch.ones(1), torch.ones(2)
    inputs.note((kept, gone, shown), None)
    inputs.drop_tensors()
    part = shown[:1]
    del gone, shown

    assert getweakrefs(kept) == []
    assert inputs.storage_keys() == {storage_key(kept), storage_key(part)}
