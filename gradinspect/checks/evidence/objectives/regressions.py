"""The regressions in a loss: what is compared there, of the calls that a program made."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors, calls_behind, first_behind

SAME_VALUES = frozenset((
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "float", "to",
    "getitem", "detach", "expand", "expand_as", "clone", "t", "T", "type_as",
))  # fmt: skip
ADDS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub"))
PRODUCTS = frozenset(("mul", "rmul", "imul"))
SUMS = ADDS | PRODUCTS | frozenset((
    "neg", "div", "truediv", "true_divide", "sum", "mean", "stack", "cat", "unsqueeze", "squeeze", "view", "reshape",
    "flatten", "float", "to", "clone", "getitem",
))  # fmt: skip
REGRESSIONS = frozenset(("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"))
LOSSES_OF_TARGETS = REGRESSIONS | frozenset((
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
))  # fmt: skip
_ERRORS = frozenset(("pow", "square", "abs"))
_DIFFERENCES = frozenset(("sub", "rsub"))


class Regression(NamedTuple):
    """Two values that a loss compares."""

    call: int  # the loss, or the difference of the two
    first: Read
    second: Read

    @property
    def sides(self) -> tuple[tuple[Read, Read], tuple[Read, Read]]:
        """Each with the other."""
        return (self.first, self.second), (self.second, self.first)


def regressions(calls: Sequence[Call], root: Read) -> Iterator[Regression]:
    """Walk back from a loss over what is added up in it, and yield each pair that is compared."""
    for number in calls_behind(calls, root, SUMS | _ERRORS):
        call = calls[number]
        name = call.name.strip("_")
        if len(call.reads) >= 2 and name in REGRESSIONS:
            yield Regression(number, *call.reads[:2])
        elif name in _ERRORS and len(call.reads) == 1 and call.reads[0].leads_back:
            difference = calls[call.reads[0].call]
            if difference.name.strip("_") in _DIFFERENCES and len(difference.reads) == 2:
                yield Regression(call.reads[0].call, *difference.reads)


def leaves_behind(calls: Sequence[Call], read: Read, *, stops_at_leaves: bool = True) -> set[int]:
    """Collect the leaves that a value was computed from, also where no gradient would come to them.

    Args:
        calls: In the order in which they were made.
        read: The value.
        stops_at_leaves: Whether to leave out what a leaf's own value was made of.
    """
    behind = ancestors(calls, read.call, stops_at_leaves=stops_at_leaves)
    found = {one.leaf for number in behind for one in calls[number].reads if one.leaf != NO_LEAF and one.is_live}
    return found | ({read.leaf} - {NO_LEAF})


def live_behind(calls: Sequence[Call], number: int) -> tuple[set[int], set[int]]:
    """Collect the calls that a gradient comes to from what one call made, that call too, and the leaves."""
    todo, seen, leaves = [number], set[int](), set[int]()
    while todo:
        one = todo.pop()
        if one in seen or one == OUTSIDE:
            continue
        seen.add(one)
        leaves |= {read.leaf for read in calls[one].reads if read.is_live and read.leaf != NO_LEAF}
        todo += [read.call for read in calls[one].reads if read.leads_back]
    return seen, leaves


def made_by(calls: Sequence[Call], read: Read) -> int:
    """Return the call that computed a value, before it was reshaped, selected from or detached."""
    return first_behind(calls, read.call, SAME_VALUES)
