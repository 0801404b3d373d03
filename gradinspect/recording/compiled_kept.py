"""Whether eager would keep a tensor too that compiled code keeps for backward.

What comes in: an argument of a compiled backward graph, and what each operator of eager saves. What goes out: yes, no,
or None if the graph does not show it.

NOTE [What eager keeps]
AOTAutograd traces eager's own backward, so what an operator of the backward uses as it is, eager has saved. Two things
hide it. What the partitioner did not keep is computed again, by operators of the forward: a tensor that only those use
is kept by nobody else. And an operator may be decomposed, in forward and in backward: what is common to both is a part
of the forward then. The operators of one forward operator and of its backward have the same number, so its first use
within them shows what it is for, and the catalog whether that operator saves inputs, outputs or neither. What only the
inside of a decomposed operator has made is not told apart from its outputs, unless its backward is not decomposed.
Views that only backward takes may be taken in the forward, which keeps what they are of. Eager's dropout on the CPU
keeps a mask of floating point numbers in the place of a boolean one. Source: torch/_functorch/partitioners.py,
aten/src/ATen/native/Dropout.cpp, torch 2.13.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradinspect.catalog import Catalog
from gradinspect.torch_api.compiled_graphs import (
    forward_number,
    is_checkpointed,
    is_mask_on_cpu,
    is_of_eager,
    is_operator,
    is_recomputed,
    is_undecomposed,
    is_view,
    maker_overload,
    storages_of,
    users_of,
    whole_of,
)

_TENSOR = re.compile(r"Tensor\S*\s+(\w+)")
_DROPOUT = "native_dropout"
_BATCH_NORM = "_native_batch_norm_legit_functional"  # traced in the place of the one that writes its statistics
_SAME = {_BATCH_NORM: "native_batch_norm"}


class Saves(NamedTuple):
    """What an operator keeps for its backward."""

    inputs: bool
    outputs: bool


def saves_of(catalog: Catalog) -> Callable[[str], Saves | None]:
    """Return what finds out what an operator saves: `mul.Tensor`; None of one that is not known."""
    found: dict[str, Saves] = {}
    for entry in catalog.entries.values():
        name, _, rest = entry.signature.partition("(")
        inputs = set(_TENSOR.findall(rest.partition(" -> ")[0]))
        found[name] = Saves(bool(inputs.intersection(entry.saved)), bool(entry.outputs))
    return lambda name: found.get(_SAME.get(name, name))


def is_kept_by_eager(argument: Any, saves: Callable[[str], Saves | None]) -> bool | None:
    """Return whether eager keeps a saved tensor too; None: not known. NOTE [What eager keeps].

    Args:
        argument: Of the backward graph.
        saves: What operators save.
    """
    if maker_overload(argument) == _DROPOUT and is_mask_on_cpu(argument):
        return False
    verdicts = {_verdict(argument, user, saves) for user in _uses(argument)}
    if True in verdicts:
        return True
    return None if None in verdicts or not verdicts else False


def _uses(argument: Any) -> Iterator[Any]:
    """Yield the operators that use a tensor, or a view of it."""
    own, views = storages_of(argument).keys(), [argument]
    while views:
        for user in users_of(views.pop()):
            if is_operator(user) and own & storages_of(user).keys():
                views.append(user)
            elif is_operator(user):
                yield user


def _verdict(argument: Any, user: Any, saves: Callable[[str], Saves | None]) -> bool | None:
    number = forward_number(user)
    if number is None or is_checkpointed(argument) or is_checkpointed(user):
        return None
    is_own = forward_number(argument) == number
    if is_recomputed(user) and not _reaches_backward(user, number):
        return False
    if not is_recomputed(user) and (not is_own or is_view(argument)):
        return True
    saved = saves(maker_overload(argument if is_own else user) or "")
    if saved is None or not is_own:
        return None if saved is None else saved.inputs
    if not saved.outputs:
        return False
    is_given_as_it_is = not is_recomputed(user) and is_of_eager(user)
    return True if is_given_as_it_is or is_undecomposed(argument) else None


def _reaches_backward(call: Any, number: int) -> bool:
    """Return whether a part of a forward operator is a part of its backward too."""
    todo, seen = [call], {call}
    while todo:
        for user in users_of(todo.pop()):
            if user in seen or forward_number(user) != number:
                continue
            if not is_recomputed(user):
                return True
            seen.add(user)
            todo.append(whole_of(user))
    return False
