"""How gradients change from one backward call to the next.

What comes in: a `Graph` with gradients for each call, in order. What goes out: a `GradientStep` for each, without its
graph, and a row for each parameter.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import (
    GradientNote,
    ParameterRow,
    gradient_notes,
    gradients_of,
    parameter_rows,
    unmeasured_notes,
)
from gradinspect.analyses.summary import describe_capture, describe_other_calls
from gradinspect.graph import Graph, Record


class GradientStep(Record, frozen=True, kw_only=True):
    """One backward call."""

    number: int | None  # 1 for the first of the program
    captured_at: str
    other_calls: str = ""
    loss: float | None
    findings: tuple[GradientNote, ...]
    unmeasured: tuple[str, ...] = ()  # what is not known, and why, in sentences
    parameters: tuple[ParameterRow, ...]

    @property
    def line(self) -> str:
        """The line that makes the call, and its code: `train.py:41  loss.backward()`."""
        return self.captured_at.partition("  ")[2]


class GradientSteps(Record, frozen=True, kw_only=True):
    """Consecutive backward calls."""

    asked: int
    graph: Graph  # of the last one
    steps: tuple[GradientStep, ...]


class Move(Record, frozen=True, kw_only=True):
    """One parameter through all calls. Leaves with the same name are told apart by their order."""

    name: str
    rows: tuple[ParameterRow | None, ...]  # one per call; None where the graph does not have it

    @property
    def norms(self) -> tuple[float | None, ...]:
        """The gradient norm in each call; None where there was no gradient, or it was not measured."""
        return tuple(None if row is None or row.stats is None else row.stats.norm for row in self.rows)

    def in_calls(self, places: Sequence[int]) -> "Move":
        """Keep some of the calls."""
        return replace(self, rows=tuple(self.rows[place] for place in places))


def by_line(steps: Sequence[GradientStep]) -> list[list[int]]:
    """Group the places of calls that are made on the same line of the program: those of D and of G of a GAN."""
    groups: dict[str, list[int]] = {}
    for place, step in enumerate(steps):
        groups.setdefault(step.line, []).append(place)
    return list(groups.values())


def step_of(graph: Graph) -> GradientStep:
    """Keep the part of a backward call that is compared with others."""
    return GradientStep(
        number=graph.captured_at.number,
        captured_at=describe_capture(graph),
        other_calls=describe_other_calls(graph),
        loss=gradients_of(graph).loss,
        findings=gradient_notes(graph),
        unmeasured=unmeasured_notes(graph),
        parameters=parameter_rows(graph),
    )


def moves(steps: Sequence[GradientStep]) -> tuple[Move, ...]:
    """List the parameters in the order of their first appearance."""
    found: dict[tuple[str, int], list[ParameterRow | None]] = {}
    for index, step in enumerate(steps):
        seen: dict[str, int] = {}
        for row in step.parameters:
            place = seen[row.name] = seen.get(row.name, -1) + 1
            found.setdefault((row.name, place), [None] * len(steps))[index] = row
    return tuple(Move(name=name, rows=tuple(rows)) for (name, _), rows in found.items())


def notes_of_all(steps: Sequence[GradientStep]) -> tuple[GradientNote, ...]:
    """List each finding once, with the calls it occurs in; texts that differ only in numbers are merged."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for index, step in enumerate(steps):
        for finding in step.findings:
            found.setdefault((finding.kind, finding.node), []).append(index)
    several = []
    for key, where in found.items():
        finding = next(item for item in steps[where[0]].findings if (item.kind, item.node) == key)
        first = steps[where[0]].number
        text = f"{finding.text} In {len(where):,} of {len(steps):,} calls, first in #{first}."
        several.append(replace(finding, text=text))
    return tuple(several)


def unmeasured_in_all(steps: Sequence[GradientStep]) -> tuple[str, ...]:
    """List each sentence once."""
    return tuple(dict.fromkeys(sentence for step in steps for sentence in step.unmeasured))
