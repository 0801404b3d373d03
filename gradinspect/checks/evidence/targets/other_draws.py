"""Log-probabilities of an action that was drawn for them alone, while another one was taken.

NOTE [Drawn for its score]
A policy draws an action, takes it, and learns from the logarithm of its probability. Where a second draw of the same
probabilities is scored, the first one is what the reward is of. It counts where nothing but the score reads the second
draw, and something else reads the first one of the same probabilities. Several draws that are all scored are meant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gradinspect.checks.evidence.objectives.regressions import SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import OtherDraw
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, first_behind
from gradinspect.graph import Frame

LEAST_CALLS = 3  # of a line
MOST_CALLS = 30
_FEW = 80  # calls back from a score, among which the other draw is looked for
_CASTS = SAME_VALUES | frozenset(("long", "int", "broadcast_tensors"))
_CHECKS = frozenset(
    ("ge", "le", "eq", "lt", "gt", "all", "any", "bitwise_and", "and", "ne", "logical_and", "remainder")
)


class _Seen(Struct):
    """All calls on a line."""

    num_calls: int = 0
    taken: int | None = None  # the frame of the draw that was taken
    drawn: int | None = None
    is_other: bool = True


class OtherDrawLog:
    """Looks at what selects the logarithm of a probability. NOTE [Drawn for its score]."""

    functions = frozenset(("gather",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that drew."""
        self._flow = flow
        self._scored: dict[int | None, list[tuple[int, int]]] = {}  # by the line, the draw and the call of its score

    def note(self, _function: str, args: Sequence[Any], _kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if len(args) < 3 or not args[0].requires_grad:
            return
        scored = self._scored.setdefault(number, [])
        if len(scored) < MOST_CALLS:
            scored.append((self._draw(self._flow.read(args[2]).call), len(self._flow.calls)))

    def _draw(self, number: int) -> int:
        """Return the call that drew an index."""
        calls = self._flow.calls
        number = first_behind(calls, number, _CASTS)
        return number if number != OUTSIDE and calls[number].name == "multinomial" else OUTSIDE

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[OtherDraw]:
        """Yield the lines where it was so in every call."""
        for number, scored in self._scored.items():
            seen = _Seen()
            for draw, score in scored:
                self._look(seen, draw, score)
            if seen.is_other and seen.num_calls >= LEAST_CALLS:
                yield OtherDraw(
                    num_calls=seen.num_calls, taken=frame_of(seen.taken), drawn=frame_of(seen.drawn),
                    scored=frame_of(number),
                )  # fmt: skip

    def _look(self, seen: _Seen, draw: int, score: int) -> None:
        calls = self._flow.calls
        seen.num_calls += 1
        other = OUTSIDE if draw == OUTSIDE else self._other(draw)
        seen.is_other = seen.is_other and other != OUTSIDE and _is_read_by_score_alone(calls, draw, score)
        if other != OUTSIDE:
            seen.taken, seen.drawn = calls[other].frame, calls[draw].frame

    def _other(self, draw: int) -> int:
        """Return another draw of the same probabilities that something else reads, and no score."""
        calls = self._flow.calls
        near = range(max(0, draw - _FEW), draw)
        wanted = _drawn_from(calls, draw)
        for one in near:
            is_draw = calls[one].name == "multinomial" and _drawn_from(calls, one) == wanted != OUTSIDE
            if is_draw and not any(one == other for scored in self._scored.values() for other, _ in scored):
                return one
        return OUTSIDE


def _drawn_from(calls: Sequence[Call], draw: int) -> int:
    """Return the call that computed the probabilities of a draw."""
    return first_behind(calls, calls[draw].reads[0].call, _CASTS) if calls[draw].reads else OUTSIDE


def _is_read_by_score_alone(calls: Sequence[Call], draw: int, score: int) -> bool:
    """Return whether what was drawn goes nowhere else, up to its score and some calls after it."""
    made = {draw}
    for number in range(draw + 1, min(len(calls), score + _FEW)):
        call = calls[number]
        if made.isdisjoint(read.call for read in call.reads) or number == score:
            continue
        name = call.name.strip("_")
        if name not in _CASTS | _CHECKS:
            return False
        made |= {number} if name in _CASTS else set()
    return True
