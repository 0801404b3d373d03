"""What one call writes to, and which operator does so, judged by its arguments."""

from typing import Any

import torch

from gradinspect.checks.evidence.in_place.write_access import Access
from gradinspect.checks.evidence.values.torch_calls import CallKind, tensors_in
from gradinspect.checks.facts.graphs import INDEXED_ASSIGNMENT, MASKED_ASSIGNMENT
from gradinspect.checks.facts.value_flow import short_name
from gradinspect.recording.values.storages import storage_key

_ASSIGNMENT = "torch.Tensor.__setitem__"
_MEMORY_ASSIGNMENT = "torch.Tensor.data.__set__"


def silent_targets(access: Access, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """List the arguments that a call writes without raising their version."""
    if not access.silent or (access.when is not None and not access.when.of(args, kwargs)):
        return []
    return [tensor for item in access.silent for tensor in tensors_in(item.of(args, kwargs))]


def known_targets(name: str, kind: CallKind, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """List the arguments that a call writes to if the name of the function shows it."""
    if "out" in kwargs:
        return tensors_in(kwargs["out"])
    is_of_list = short_name(name).startswith("_foreach_") and name.endswith("_")
    return tensors_in(*args[:1]) if is_of_list or kind is CallKind.WRITES else []


def without_aliases(places: list[int], inputs: list[torch.Tensor], targets: list[torch.Tensor]) -> list[int]:
    """Leave out inputs whose version moved only because they show the memory of a target.

    Args:
        places: Of the inputs whose version moved.
        inputs: Of the call.
        targets: Those that it writes to.
    """
    known = {id(target) for target in targets}
    written = {storage_key(target) for target in targets}
    return [place for place in places if id(inputs[place]) in known or storage_key(inputs[place]) not in written]


def written_index(name: str, args: tuple[Any, ...]) -> Any:
    """Return which part of its target a call writes to."""
    return args[1] if name == _ASSIGNMENT and len(args) > 1 else ...


def writing_operator(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Name the operator that wrote, as torch does: `relu(x, inplace=True)` is `relu_`, `x += 1` is `add_`."""
    short = short_name(name)
    if name == _ASSIGNMENT:
        return _assignment(args)
    if name == _MEMORY_ASSIGNMENT:
        return "assignment to .data"
    if short.startswith("__i") and short.endswith("__"):
        return f"{short[3:-2]}_"
    return f"{short}_" if kwargs.get("inplace") is True else short


def _assignment(args: tuple[Any, ...]) -> str:
    """Name an assignment to a part of a tensor: one that a mask of its shape selects, a tensor, or anything else."""
    if len(args) < 2 or not isinstance(args[1], torch.Tensor):
        return "item assignment"
    is_mask = args[1].dtype is torch.bool and args[1].dim() == args[0].dim()
    return MASKED_ASSIGNMENT if is_mask else INDEXED_ASSIGNMENT
