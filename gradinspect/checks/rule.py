"""What a rule of `check` is: its code and documentation, what it steers, and the functions that judge."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from gradinspect.checks.findings import Finding, Place
from gradinspect.graph import Record

FactT = TypeVar("FactT")


class Rule(Record, frozen=True, kw_only=True):
    """A mistake that `check` knows. Only a rule makes findings, so each finding has a declared code."""

    code: str  # "GI101"
    title: str  # also of its findings
    summary: str  # one sentence; this and what follows is what `gradinspect explain` and docs/codes.md show
    explanation: str
    change: str  # a program with the mistake, as a change to one without it: lines begin with "  ", "- " or "+ "
    remedy: str
    command: str = "gradinspect check"  # that finds it
    stops_run: bool = False  # the engine would wait forever, so the program ends before it runs
    explains_gradients: bool = False  # gradients that look wrong afterwards are a consequence of it
    explains: tuple[str, ...] = ()  # codes of findings that are a consequence of it, where they name one of its lines
    is_general: bool = False  # not reported of what another finding names already
    needs_values: bool = False  # of gradients at all nodes and of results: they are read only if such a rule is on
    is_nonfinite: bool = False  # its first line makes NaN or Inf, which later calls meet again
    must_repeat: int = 0  # reported only if all observed backwards on that line show it, and at least this many do

    @property
    def sample(self) -> str:
        """The program with the mistake."""
        return _without("+", self.change)

    @property
    def fixed(self) -> str:
        """The same program without it."""
        return _without("-", self.change)

    def finding(self, *, text: str, places: Sequence[Place], remedy: str, subjects: Sequence[str] = ()) -> Finding:
        """Make a finding of this rule.

        Args:
            text: Why it is wrong.
            places: The lines it is about.
            remedy: What to do.
            subjects: Every tensor or parameter it is about.
        """
        return Finding(
            code=self.code, title=self.title, text=text, places=tuple(places), remedy=remedy, subjects=tuple(subjects)
        )


def _without(mark: str, change: str) -> str:
    return "".join(f"{line[2:]}\n" for line in change.splitlines() if not line.startswith(mark))


class Judge(NamedTuple, Generic[FactT]):
    """A function that is called with every fact of one type, wherever `check` comes across one."""

    fact: type[FactT]
    findings: Callable[[FactT], Iterable[Finding]]
