"""Tensors that no gradient reaches: their record, grouped by cause, and what the rules about them share."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from gradinspect.checks.facts.values import MissingGradient, NoticedAt
from gradinspect.checks.findings import Place, line_of, place_of


class SameCause(NamedTuple):
    """All tensors that no gradient reaches for the same reason."""

    tensors: tuple[MissingGradient, ...]  # at least one

    @property
    def first(self) -> MissingGradient:
        """One of them, for what they have in common."""
        return self.tensors[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once."""
        return tuple(dict.fromkeys(one.name for one in self.tensors))

    @property
    def is_one(self) -> bool:
        """Whether one name stands for all."""
        return len(self.names) == 1


def by_cause(missing: Sequence[MissingGradient]) -> Iterator[SameCause]:
    """Group tensors by what they lost their gradient to."""
    ordered = sorted(enumerate(missing), key=lambda item: (_cause(item[1]), item[0]))
    groups = [tuple(one for _, one in group) for _, group in groupby(ordered, key=lambda item: _cause(item[1]))]
    for group in sorted(groups, key=lambda group: missing.index(group[0])):
        yield SameCause(group)


def places_of(one: MissingGradient) -> list[Place]:
    """List the lines of a tensor's way to where its gradient is missing."""
    places = [*place_of("read", one.read)]
    if one.kind == "cut":
        cut = one.off or one.cut
        places += place_of("detached", cut, None if one.off is not None else one.called)
        places += place_of("used", None if one.used == cut else one.used)
        places += place_of("forced", one.forced)
    elif one.kind == "unused":
        places += place_of("last", one.cut)
    places += place_of("backward", one.backward)
    if one.noticed.frame != one.backward:
        places += place_of({"read": "wanted"}.get(one.noticed.kind, one.noticed.kind), one.noticed.frame)
    return places


def failure(noticed: NoticedAt) -> str:
    """Say that torch will raise an error."""
    return f"This {'autograd.grad' if noticed.kind == 'grad' else 'backward'} will fail."


def and_failure(noticed: NoticedAt) -> str:
    """Say so after another sentence, where a missing gradient is an error."""
    return f" {failure(noticed)}" if noticed.kind == "grad" else ""


def _cause(one: MissingGradient) -> tuple[str, ...]:
    if one.kind == "unread":
        return (one.kind, str(one.noticed.frame), one.noticed.kind)
    is_scope = one.cause in ("grad_off", "checkpoint")  # it covers many lines, and may begin on one that was not seen
    return (one.kind, one.cause, line_of(one.off if is_scope else one.cut))
