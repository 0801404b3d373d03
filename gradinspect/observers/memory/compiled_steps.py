"""Notice that optimizers have stepped in code under torch.compile, where no hook of ours runs."""

from collections.abc import Iterator, MutableMapping

from torch.optim import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from gradinspect.recording.names.instances import live_optimizers
from gradinspect.torch_api.tensors import known_version, plain_tensors_only


class CompiledSteps:
    """Compares the versions of parameters after a backward call with those after compiled code."""

    def __init__(self) -> None:
        """Start before any call."""
        self._versions: MutableMapping[Optimizer, int] = WeakIdKeyDictionary()

    def backward_ended(self) -> None:
        """Note the parameters of all optimizers."""
        for optimizer in live_optimizers():
            self._versions[optimizer] = _version(optimizer)

    def stepped(self) -> Iterator[Optimizer]:
        """Yield the optimizers whose parameters have changed since then."""
        for optimizer, before in tuple(self._versions.items()):
            if _version(optimizer) != before:
                yield optimizer


def _version(optimizer: Optimizer) -> int:
    with plain_tensors_only():
        return sum(known_version(tensor) or 0 for group in optimizer.param_groups for tensor in group["params"])
