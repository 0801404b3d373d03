"""How values flow through a program, and where gradients cannot flow back.

What comes in: the calls that a program made, each with the tensors that it read. What goes out: for a tensor that no
gradient reaches, whether its value reached the loss at all, and the call that detached it.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

OUTSIDE = -1  # a tensor that no call was seen to make
NO_LEAF = -1
MOST_NAMES = 4096  # of functions, of which the short ones are kept
NORMAL = "torch.normal"  # its result has a graph, in which its derivative is zero
_FROM_PYTHON = frozenset(("tensor", "as_tensor", "asarray", "full", "new_tensor", "scalar_tensor", "from_numpy"))

# How a call returned a value without its graph.
DetachCause: TypeAlias = Literal[
    "detach", "data", "deepcopy", "loaded", "copy", "integer", "grad_off", "checkpoint", "function", "python",
    "gradient", "assigned", "rewrapped", "sample", "unknown",
]  # fmt: skip


class Read(Struct, frozen=True, gc=False):
    """A tensor that a call read. There are very many, so the garbage collector does not track them."""

    call: int = OUTSIDE  # the call that made it
    leaf: int = NO_LEAF
    is_live: bool = False  # it requires grad

    @property
    def leads_back(self) -> bool:
        """Whether a gradient flows on to the call that made it; at a leaf it ends."""
        return self.is_live and self.leaf == NO_LEAF


class Call(Struct, frozen=True, gc=False):
    """One call of a torch function."""

    op: str  # "torch.Tensor.detach"
    reads: tuple[Read, ...] = ()
    frame: int | None = None
    cause: DetachCause | None = None  # when it read what requires grad and returned what does not
    wrt: tuple[Read, ...] = ()  # of autograd.grad: its inputs
    is_off: bool = False  # grad mode was
    is_write: bool = False  # into a tensor that was there before

    @property
    def is_attribute(self) -> bool:
        """Whether it reads an attribute, such as `.grad`."""
        return self.op.endswith(".__get__")

    @property
    def name(self) -> str:
        """The last part of its name: `detach`."""
        return short_name(self.op)


class FlowOutcome(NamedTuple):
    """Where the value of one tensor went."""

    kind: Literal["cut", "unused", "unread"]
    first: int | None = None  # the call that read it first
    cut: int | None = None  # the call that detached it; of an unused one the last that it reached
    used: int | None = None  # the call that read it then; None: it is the loss
    cause: DetachCause = "unknown"
    path: tuple[int, ...] = ()  # from the first call to the cut
    exits: tuple[int, ...] = ()  # the calls that may have taken it to Python, if the cut is one of them
    into: int = NO_LEAF  # the leaf that its value became after the cut


@lru_cache(maxsize=MOST_NAMES)  # it is asked for of each call, and there are few functions
def short_name(op: str) -> str:
    """Shorten a function's name: `torch.Tensor.data.__get__` is `data`, `torch.Tensor.add_` is `add_`."""
    return op.removesuffix(".__get__").removesuffix(".__set__").rpartition(".")[2]


def flow_outcomes(calls: Sequence[Call], starts: Sequence[Read], root: Read) -> list[FlowOutcome]:
    """Find out for each start why no gradient reaches it from a root.

    A start's bit travels along with its value, through `touched`; through `live` only as far as a gradient could come
    back.

    Args:
        calls: In the order in which they were made.
        starts: Leaves, or tensors that a call made.
        root: The loss.
    """
    leaves = {start.leaf: 1 << place for place, start in enumerate(starts) if start.leaf != NO_LEAF}
    made = {start.call: 1 << place for place, start in enumerate(starts) if start.leaf == NO_LEAF}
    touched, live = _follow(calls, leaves, made)
    needed = ancestors(calls, root.call)
    in_order = sorted(needed)
    leaf_reads = dict.fromkeys(read for number in in_order for read in calls[number].reads if read.leaf != NO_LEAF)
    ways = _Ways(calls, touched, live, in_order, [read for read in leaf_reads if read.call != OUTSIDE])
    cuts = _cuts(ways, root)
    found = []
    for place in range(len(starts)):
        bit = 1 << place
        seen = [number for number, mask in enumerate(touched) if mask & bit]
        first = next((number for number in seen if number not in made), None)
        cut = cuts.get(place)
        outcome = None if cut is None else _outcome_of_cut(ways, cut, first, bit, root)
        if cut is None or cut.is_met:
            reading = [number for number in seen if number not in made]
            left = _outcome_without_cut(calls, reading, [n for n in reading if live[n] & bit], needed, root)
            outcome = left if outcome is None or left.kind == "cut" else outcome
        assert outcome is not None  # noqa: S101  # one of the two has made it
        found.append(outcome)
    return found


def ancestors(calls: Sequence[Call], number: int, *, stops_at_leaves: bool = False) -> set[int]:
    """Collect the calls whose values went into what one call made, and that call.

    Args:
        calls: In the order in which they were made.
        number: The call; OUTSIDE has no ancestors.
        stops_at_leaves: Whether to leave out what a leaf's value was made of.
    """
    found: set[int] = set()
    todo = [number] if number != OUTSIDE else []
    while todo:
        call = todo.pop()
        if call in found:
            continue
        found.add(call)
        todo += [
            read.call
            for read in calls[call].reads
            if read.call != OUTSIDE and not (stops_at_leaves and read.leaf != NO_LEAF)
        ]
    return found


def descendants(calls: Sequence[Call], number: int) -> set[int]:
    """Collect the calls into which the value of what one call made went, and that call."""
    found = {number}
    for later in range(number + 1, len(calls)):
        if any(read.call in found for read in calls[later].reads):
            found.add(later)
    return found


def first_behind(calls: Sequence[Call], number: int, passed: Collection[str]) -> int:
    """Return the call that made a value, before functions that pass on their first argument.

    Args:
        calls: In the order in which they were made.
        number: The last call, or OUTSIDE.
        passed: The names of these functions, without underscores at their ends.
    """
    while number != OUTSIDE and calls[number].name.strip("_") in passed and calls[number].reads:
        number = calls[number].reads[0].call
    return number


def calls_behind(calls: Sequence[Call], root: Read, passed: Collection[str]) -> Iterator[int]:
    """Walk back from a tensor as a gradient does, and yield each call once.

    Args:
        calls: In the order in which they were made.
        root: The tensor.
        passed: The names of the functions, without underscores at their ends, whose inputs are walked to as well.
    """
    todo, seen = [root.call] if root.leads_back else [], {OUTSIDE}
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        yield number
        if calls[number].name.strip("_") in passed:
            todo += [read.call for read in calls[number].reads if read.leads_back]


def all_behind(calls: Sequence[Call], root: Read, stops: frozenset[str] = frozenset()) -> set[int]:
    """Collect the calls that a gradient comes to, without what lies behind those of some names."""
    todo, seen = [root.call] if root.leads_back else [], set[int]()
    while todo:
        number = todo.pop()
        if number != OUTSIDE and number not in seen and calls[number].name.strip("_") not in stops:
            seen.add(number)
            todo += [read.call for read in calls[number].reads if read.leads_back]
    return seen


def _follow(calls: Sequence[Call], leaves: dict[int, int], made: dict[int, int]) -> tuple[list[int], list[int]]:
    touched, live = [0] * len(calls), [0] * len(calls)
    for number, call in enumerate(calls):
        reached = connected = made.get(number, 0)
        for read in call.reads:
            bit = leaves.get(read.leaf, 0) if read.leaf != NO_LEAF else 0
            reached |= bit
            if read.is_live:
                connected |= bit
            if read.call != OUTSIDE:
                reached |= touched[read.call]
                if read.leads_back:
                    connected |= live[read.call]
        touched[number], live[number] = reached, connected
    return touched, live


class _Ways(NamedTuple):
    """The calls of a program, and which starts' values and gradients come as far as each."""

    calls: Sequence[Call]
    touched: Sequence[int]
    live: Sequence[int]
    needed: Sequence[int]  # those that the root was computed from
    leaves: Sequence[Read]  # reads among them of leaves that a call made


class _Cut(NamedTuple):
    """A read of a result without its graph."""

    read: Read
    used: int | None  # the call that reads it; None: it is the root
    is_met: bool  # what comes of it meets its start again: NOTE [The cut that counts]


def _cuts(ways: _Ways, root: Read) -> dict[int, _Cut]:
    """Return for each start the first cut on the way to the root.

    NOTE [The cut that counts]
    An action is sampled from a policy and used as the index of its own log-probabilities. The index has no gradient,
    but the log-probabilities have, so if they are detached later, that is why no gradient arrives. So a cut counts less
    if what comes of it meets a value of the same start that has its graph. If that is so of every cut, a graph leads
    from the root to the start.
    """
    cuts: dict[int, _Cut] = {}
    met = _meetings(ways)
    for number in ways.needed:
        for read in ways.calls[number].reads:
            if read.call != OUTSIDE and not read.leads_back:
                for place in _places(ways.live[read.call]):
                    _note_cut(cuts, place, _Cut(read, number, is_met=bool(met[read.call] & 1 << place)))
    if root.call != OUTSIDE and not root.leads_back:
        for place in _places(ways.live[root.call]):
            _note_cut(cuts, place, _Cut(root, None, is_met=False))
    return cuts


def _note_cut(cuts: dict[int, _Cut], place: int, cut: _Cut) -> None:
    known = cuts.get(place)
    if known is None or (known.is_met and not cut.is_met):
        cuts[place] = cut


def _meetings(ways: _Ways) -> dict[int, int]:
    """Return for each call the starts whose graph some way from its result to the root meets."""
    met = dict.fromkeys(ways.needed, 0)
    for number in reversed(ways.needed):
        for read in ways.calls[number].reads:
            if read.call != OUTSIDE:
                met[read.call] |= met[number] | ways.live[number]
    return met


def _outcome_of_cut(ways: _Ways, cut: _Cut, first: int | None, bit: int, root: Read) -> FlowOutcome:
    calls, number, used = ways.calls, cut.read.call, cut.used
    if calls[number].is_off and used is not None:
        used = _used_outside(ways, number, bit)
    return FlowOutcome(
        "cut", first, number, used, _cause(calls[number], cut.read), _path(calls, ways.live, number, bit),
        into=_leaf_made_of(ways, number, bit, root),
    )  # fmt: skip


def _leaf_made_of(ways: _Ways, cut: int, bit: int, root: Read) -> int:
    """Find the leaf that a value became after its cut, on its way to the root."""
    found = (read.leaf for read in (root, *ways.leaves) if read.call >= cut and ways.touched[read.call] & bit)
    return next((leaf for leaf in found if leaf != NO_LEAF), NO_LEAF)


def _places(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _used_outside(ways: _Ways, cut: int, bit: int) -> int | None:
    """Find the call that took a value out of the scope in which gradients were disabled."""
    for number in ways.needed:
        if number > cut and not ways.calls[number].is_off and ways.touched[number] & bit:
            return number
    return None


def _cause(call: Call, read: Read) -> DetachCause:
    """Return how a graph was lost: in a call, or in the step from its result to what was read."""
    if call.cause is not None and not (call.cause == "integer" and read.leaf != NO_LEAF):
        return call.cause
    if call.is_write:
        return "assigned"
    if call.is_off:
        return "grad_off"
    return "copy" if call.name in _FROM_PYTHON else "rewrapped"


def _path(calls: Sequence[Call], live: Sequence[int], end: int, bit: int) -> tuple[int, ...]:
    path = [end]
    while True:
        reads = calls[path[-1]].reads
        before = next((r.call for r in reads if r.leads_back and r.call != OUTSIDE and live[r.call] & bit), None)
        if before is None:
            return tuple(reversed(path))
        path.append(before)


def _outcome_without_cut(
    calls: Sequence[Call], seen: Sequence[int], live: Sequence[int], needed: set[int], root: Read
) -> FlowOutcome:
    """Say where a value went that no call carried to the root."""
    left = [number for number in seen if calls[number].cause == "python"]
    first = seen[0] if seen else None
    if left:
        back = [number for number in needed if number > left[0] and calls[number].name in _FROM_PYTHON]
        if back or root.call == OUTSIDE or not root.is_live:
            reader = min(back) if back else None
            exits = tuple(number for number in left if reader is None or number < reader)
            return FlowOutcome("cut", first, exits[0], reader, "python", (exits[0],), exits)
    used = [number for number in live if calls[number].cause not in ("grad_off", "sample", "data", "detach")]
    if used:
        ends = set(left).intersection(used)  # others are of an evaluation, which has no graph to lose
        return FlowOutcome("unused", used[0], *((max(ends), None, "python") if ends else (used[-1],)))
    return FlowOutcome("unread")
