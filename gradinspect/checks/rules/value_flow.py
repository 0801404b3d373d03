"""How values flow through a program, and where gradients cannot flow back.

What comes in: the calls that a program made, each with the tensors that it read. What goes out: for a tensor that no
gradient reaches, whether its value reached the loss at all, and the call that detached it.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

OUTSIDE = -1  # a tensor that no call was seen to make
NO_LEAF = -1
_FROM_PYTHON = frozenset(("tensor", "as_tensor", "asarray", "full", "new_tensor", "scalar_tensor", "from_numpy"))

# How a call returned a value without its graph.
DetachCause: TypeAlias = Literal[
    "detach", "data", "deepcopy", "loaded", "copy", "integer", "grad_off", "checkpoint", "function", "python",
    "gradient", "assigned", "rewrapped", "unknown",
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
    cuts = _cuts(calls, live, sorted(needed), root)
    found = []
    for place in range(len(starts)):
        bit = 1 << place
        seen = [number for number, mask in enumerate(touched) if mask & bit]
        first = next((number for number in seen if number not in made), None)
        if place in cuts:
            read, used = cuts[place]
            cut = read.call
            if calls[cut].is_off and used is not None:
                used = _used_outside(calls, touched, needed, cut, bit)
            path = _path(calls, live, cut, bit)
            found.append(FlowOutcome("cut", first, cut, used, _cause(calls[cut], read), path))
            continue
        reading = [number for number in seen if number not in made]
        found.append(_outcome_without_cut(calls, reading, [n for n in reading if live[n] & bit], needed, root))
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


def _cuts(
    calls: Sequence[Call], live: Sequence[int], needed: Sequence[int], root: Read
) -> dict[int, tuple[Read, int | None]]:
    """Return for each start the first read of a result without its graph on the way to the root, and who reads it."""
    cuts: dict[int, tuple[Read, int | None]] = {}
    for number in needed:
        for read in calls[number].reads:
            if read.call != OUTSIDE and not read.leads_back:
                for place in _places(live[read.call]):
                    cuts.setdefault(place, (read, number))
    if root.call != OUTSIDE and not root.leads_back:
        for place in _places(live[root.call]):
            cuts.setdefault(place, (root, None))
    return cuts


def _places(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _used_outside(calls: Sequence[Call], touched: Sequence[int], needed: set[int], cut: int, bit: int) -> int | None:
    """Find the call that took a value out of the scope in which gradients were disabled."""
    for number in sorted(needed):
        if number > cut and not calls[number].is_off and touched[number] & bit:
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
    """Tell where a value went that no call carried to the root."""
    left = [number for number in seen if calls[number].cause == "python"]
    first = seen[0] if seen else None
    if left:
        back = [number for number in needed if number > left[0] and calls[number].name in _FROM_PYTHON]
        if back or root.call == OUTSIDE or not root.is_live:
            reader = min(back) if back else None
            exits = tuple(number for number in left if reader is None or number < reader)
            return FlowOutcome("cut", first, exits[0], reader, "python", (exits[0],), exits)
    used = [number for number in live if calls[number].cause not in ("grad_off", "data", "detach")]
    if used:
        return FlowOutcome("unused", used[0], *((left[-1], None, "python") if left else (used[-1],)))
    return FlowOutcome("unread")
