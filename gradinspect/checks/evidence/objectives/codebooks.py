"""Entries of a table that layers are given in place of the code that chose them, which then learns nothing from them.

NOTE [Lookups on purpose]
A model that reads its own best word again chooses without a gradient, and learns all the same: the layers that read the
entry are those that chose it. Prototypes are compared with a code, and no layer is given them. In a vector-quantized
autoencoder, the loss compares the entry with the code, and the decoder is given the entry alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.regressions import (
    SAME_VALUES,
    leaves_behind,
    live_behind,
    made_by,
    regressions,
)
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors
from gradinspect.recording.transparency.own_errors import PassOver

_CHOICES = frozenset(("argmin", "argmax", "min", "max", "topk"))
_LOOKUPS = frozenset(("embedding", "__getitem__", "index_select", "matmul", "mm", "__matmul__"))
_ONE_HOT = frozenset(("one_hot", "scatter"))
_LAYERS = frozenset((
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "addmm",
    "matmul", "lstm", "gru",
))  # fmt: skip
MAX_LOOKUPS = 4  # that are looked at


class Lookup(NamedTuple):
    """The calls that chose entries, took them from a table, compared them with a code, and computed a layer."""

    chosen: int
    looked_up: int
    coded: int
    compared: int
    used: int


def unlearned_lookups(calls: Sequence[Call], root: Read, pass_over: PassOver) -> Iterator[Lookup]:
    """Find the entries that a layer is given, and that the loss compares with a code. NOTE [Lookups on purpose].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        pass_over: Counts the lookups that are not looked at.
    """
    if not root.leads_back:
        return
    behind = ancestors(calls, root.call, stops_at_leaves=True)
    chosen = {one: by for one in sorted(behind) if (by := _chosen(calls, calls[one])) is not None}
    if not chosen:
        return
    live, reached = live_behind(calls, root.call)
    layers = [one for one in sorted(live) if calls[one].name in _LAYERS]
    if len(chosen) > MAX_LOOKUPS:
        pass_over("lookup of a chosen entry", f"after the first {MAX_LOOKUPS} of a loss", len(chosen) - MAX_LOOKUPS)
    for number, by in list(chosen.items())[:MAX_LOOKUPS]:
        coders = (leaves_behind(calls, Read(by)) - _leaves_of(calls[number])) & reached
        layer = _layer(calls, layers, number, coders) if coders else None
        if layer is not None:
            yield from _compared(calls, root, coders, Lookup(by, number, OUTSIDE, OUTSIDE, layer))


def _chosen(calls: Sequence[Call], lookup: Call) -> int | None:
    """Return the call that chose the index of a lookup, or where its rows of zeros have a one."""
    if lookup.name not in _LOOKUPS:
        return None
    todo, seen = [read.call for read in lookup.reads if not read.is_live], {OUTSIDE}
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if _is_choice(calls[one]):
            return one
        if calls[one].name.strip("_") in SAME_VALUES | _ONE_HOT:
            todo += [read.call for read in calls[one].reads if not read.is_live]
    return None


def _is_choice(call: Call) -> bool:
    return call.cause == "integer" and call.name in _CHOICES


def _leaves_of(call: Call) -> set[int]:
    return {read.leaf for read in call.reads if read.is_live and read.leaf != NO_LEAF}


def _layer(calls: Sequence[Call], layers: Sequence[int], lookup: int, coders: set[int]) -> int | None:
    """Find the first layer that is given an entry, if no gradient comes through it to what chose that."""
    for number in layers:
        if number > lookup and lookup in ancestors(calls, number, stops_at_leaves=True):
            return None if live_behind(calls, number)[1] & coders else number
    return None


def _compared(calls: Sequence[Call], root: Read, coders: set[int], lookup: Lookup) -> Iterator[Lookup]:
    for regression in regressions(calls, root):
        for entry, code in regression.sides:
            is_entry = lookup.looked_up in ancestors(calls, entry.call)
            if is_entry and lookup.looked_up not in ancestors(calls, code.call) and leaves_behind(calls, code) & coders:
                yield lookup._replace(coded=made_by(calls, code), compared=regression.call)
                return
