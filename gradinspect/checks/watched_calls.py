"""The findings of all calls that were watched, looked at together, in the order of the calls.

A finding about one call may be no finding in view of the others: gradients that are zero by chance in one iteration, or
where another loss of the same graph lets the same parameters learn.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, listed
from gradinspect.graph import Frame


@dataclass(kw_only=True)
class WatchedCall:
    """A call of the engine, and what was found there."""

    line: Frame | None
    nodes: frozenset[int] = frozenset()  # their sequence numbers
    found: list[Finding] = field(default_factory=list)  # before the engine ran
    judged: list[Finding] = field(default_factory=list)  # of its gradients
    parameters: dict[str, int] = field(default_factory=dict)  # name -> what identifies it; each call has its own names
    learned: set[int] = field(default_factory=set)  # those whose gradient was not zero
    is_complete: bool = False

    @property
    def place(self) -> tuple[str, int] | None:
        """Its line."""
        return None if self.line is None else (self.line.file, self.line.line)


def findings_of_calls(calls: Sequence[WatchedCall], held_back: Collection[str]) -> Iterator[Finding]:
    """Yield the findings of all calls.

    Args:
        calls: In the order in which they were made.
        held_back: The codes that count only if every call on the same line shows them.
    """
    for call in calls:
        yield from call.found
        for finding in call.judged:
            if finding.code not in held_back:
                yield finding
            elif _is_in_all(finding, call, calls):
                yield from _without_learned(finding, call, calls)


def held_back_findings(calls: Sequence[WatchedCall], codes: Collection[str]) -> list[Finding]:
    """List the findings that a later call may still show to be none."""
    return [finding for finding in findings_of_calls(calls, codes) if finding.code in codes]


def _is_in_all(finding: Finding, call: WatchedCall, calls: Sequence[WatchedCall]) -> bool:
    rounds = [other.judged for other in calls if other.is_complete and other.place == call.place]
    key = finding.code, finding.places
    return all(any((one.code, one.places) == key for one in judged) for judged in rounds)


def _without_learned(finding: Finding, call: WatchedCall, calls: Sequence[WatchedCall]) -> Iterator[Finding]:
    """Leave out the parameters that learn by another call of the same graph."""
    others = [other for other in calls if other is not call and not other.nodes.isdisjoint(call.nodes)]
    learned = set().union(*(other.learned for other in others))
    left = [name for name in finding.subjects if call.parameters.get(name) not in learned]
    if len(left) == len(finding.subjects):
        yield finding
    elif left:
        text = finding.text.replace(listed(finding.subjects), listed(left))
        yield replace(finding, subjects=tuple(left), text=text)
