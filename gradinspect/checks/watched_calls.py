"""The findings of all calls that were watched, looked at together, in the order of the calls.

A finding about one call may be no finding in view of the others: gradients that are zero by chance in one iteration, or
where another loss of the same graph lets the same parameters learn. A unit that dies after some steps, and stays dead
to the end of what was watched, is one.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, Place, listed
from gradinspect.graph import Frame

LASTING = 3  # calls in a row, up to the last one, that show a unit to be dead


@dataclass(kw_only=True)
class WatchedCall:
    """A call of the engine, and what was found there."""

    line: Frame | None
    nodes: AbstractSet[int] = frozenset()  # their sequence numbers
    found: list[Finding] = field(default_factory=list)  # before the engine ran
    judged: list[Finding] = field(default_factory=list)  # of its gradients
    parameters: dict[str, int] = field(default_factory=dict)  # name -> what identifies it; each call has its own names
    learned: set[int] = field(default_factory=set)  # those whose gradient was not zero
    unmeasured: dict[int, str] = field(default_factory=dict)  # those whose gradient was not measured -> why
    zeroed_inside: frozenset[Place] = frozenset()  # where a unit in front of other weights returned only zeros
    is_complete: bool = False

    @property
    def place(self) -> tuple[str, int] | None:
        """Its line."""
        return None if self.line is None else (self.line.file, self.line.line)


def findings_of_calls(calls: Sequence[WatchedCall], held_back: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the findings of all calls.

    Args:
        calls: In the order in which they were made.
        held_back: The codes that count only if all calls of the same line and parameters show them, and how
            many calls at least.
    """
    for call in calls:
        yield from call.found
        for finding in call.judged:
            if finding.code not in held_back:
                yield finding
            elif _counts(finding, _rounds(finding, call, calls), held_back[finding.code]):
                yield from _without_learned(finding, call, calls)


def held_back_findings(calls: Sequence[WatchedCall], codes: Mapping[str, int]) -> list[Finding]:
    """List the findings that a later call may show to be none, or that it may confirm."""
    last = {call.place: call for call in calls if call.is_complete}
    dying = [one for call in last.values() for one in call.judged if one.code in codes and _is_inside(one, call)]
    return [*dying, *(finding for finding in findings_of_calls(calls, codes) if finding.code in codes)]


def _rounds(finding: Finding, call: WatchedCall, calls: Sequence[WatchedCall]) -> list[WatchedCall]:
    """List the calls on the same line that reach the same parameters: it may have trained another model before."""
    named = {call.parameters[name] for name in finding.subjects if name in call.parameters}
    same_line = (other for other in calls if other.is_complete and other.place == call.place)
    return [other for other in same_line if named.issubset(other.parameters.values())]


def _counts(finding: Finding, rounds: Sequence[WatchedCall], least: int) -> bool:
    """Return whether every iteration shows a finding, or each of the latest ones shows a dead unit."""
    if len(rounds) >= least and all(_shows(other, finding) for other in rounds):
        return True
    latest = rounds[-LASTING:]
    return len(latest) == LASTING and all(_shows(other, finding) and _is_inside(finding, other) for other in latest)


def _shows(call: WatchedCall, finding: Finding) -> bool:
    return any((one.code, one.places) == (finding.code, finding.places) for one in call.judged)


def _is_inside(finding: Finding, call: WatchedCall) -> bool:
    return not call.zeroed_inside.isdisjoint(finding.places[:1])


def _without_learned(finding: Finding, call: WatchedCall, calls: Sequence[WatchedCall]) -> Iterator[Finding]:
    """Leave out the parameters that learn by another loss of the same graph, in this iteration or another one."""
    nodes = set().union(*(other.nodes for other in calls if other.place == call.place))
    others = [other for other in calls if other.place != call.place and not nodes.isdisjoint(other.nodes)]
    learned = set().union(*(other.learned for other in others))
    left = [name for name in finding.subjects if call.parameters.get(name) not in learned]
    if len(left) == len(finding.subjects):
        yield finding
    elif left:
        text = finding.text.replace(listed(finding.subjects), listed(left))
        yield replace(finding, subjects=tuple(left), text=text)
