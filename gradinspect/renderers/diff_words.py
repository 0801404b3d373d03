"""What reports of a comparison say, in a terminal, a comment and an annotation alike."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.diff.folding import fold_leaves
from gradinspect.analyses.diff.records import (
    ChangedRow,
    Detail,
    Distance,
    GraphDiff,
    LeafChange,
    ModuleChange,
    ValueDiff,
)
from gradinspect.analyses.memory.rows import OUTSIDE
from gradinspect.analyses.structure.call_names import shown_path
from gradinspect.analyses.structure.name_folding import OddOne, fold_names, format_times
from gradinspect.units import format_change, format_count

SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}
LEAF_WORDS: Final = {
    "lost": "no gradient reaches", "gained": "a gradient reaches", "frozen": "frozen", "unfrozen": "unfrozen",
    "renamed": "renamed", "changed": "changed",
}  # fmt: skip
MODULE_WORDS: Final = {"removed": "only in A:", "added": "only in B:"}
GROUP_MODULE_WORDS: Final = {"removed": "missing here:", "added": "only here:"}  # of a group beside the first one
MAX_MODULES = 3  # named in a sentence
MANY_ROWS = 10  # with more, classes are counted as well: what was replaced by what is hard to see in many places
MAX_CLASSES = 6
FIELD_WORDS: Final = {"shape": "", "dtype": "", "tensor": "", "inputs": "input"}
NAMELESS: Final = frozenset({"operator", "line", "module", "hooks"})  # fields of a node that are there once


class Side(NamedTuple):
    """One of the two graphs."""

    label: str  # the SOURCE as the user wrote it
    captured_at: str


class CallDiff(NamedTuple):
    """One backward call of both programs, compared."""

    diff: GraphDiff
    sides: Sequence[Side]
    failures: Sequence[str]  # why the gates fail

    @property
    def name(self) -> str:
        """The call, as B makes it: `backward #2`."""
        return self.sides[1].captured_at.partition("  ")[0]


class StepDiff(NamedTuple):
    """What was compared of two programs: all calls that both make in a step, or one."""

    calls: Sequence[CallDiff]
    unmatched: Sequence[str] = ()  # calls that one of them makes, and the other does not, each in a sentence

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.unmatched and all(call.diff.is_empty for call in self.calls)

    @property
    def most_telling(self) -> int:
        """The place of the first call that differs, or 0."""
        return next((place for place, call in enumerate(self.calls) if not call.diff.is_empty), 0)

    @property
    def failures(self) -> list[str]:
        """Why the gates fail, with the call where there are several."""
        several = len(self.calls) > 1
        return [f"{call.name}: {one}" if several else one for call in self.calls for one in call.failures]


class ChangedLine(NamedTuple):
    """A line of code that says something else in B, with the nodes that it makes there."""

    before: str  # code
    after: str
    place: str  # "model.py:41"
    nodes: tuple[int, ...]  # of B


def apart_from_lines(rows: Iterable[ChangedRow]) -> tuple[list[ChangedRow], list[ChangedLine]]:
    """Return what differs apart from lines of code, and the lines: one makes many nodes, and is said once."""
    rest: list[ChangedRow] = []
    found: dict[tuple[str, str, str], list[int]] = {}
    for row in rows:
        others = tuple(detail for detail in row.details if detail.field != "line")
        for detail in row.details:
            if detail.field == "line":
                found.setdefault((detail.before, detail.after, row.line), []).extend(row.nodes_after)
        if others or not row.details:
            rest.append(replace(row, details=others))
    return rest, [ChangedLine(*key, tuple(nodes)) for key, nodes in found.items()]


def in_order_of_modules(rows: Iterable[ChangedRow]) -> list[ChangedRow]:
    """Sort rows by module, numbers as numbers, so that `fc2` comes before `fc10`; what is outside of modules last."""
    return sorted(rows, key=lambda row: (row.is_outside, [_numbered(part) for part in row.module.split(".")]))


def _numbered(part: str) -> list[tuple[int, str]]:
    """Split a name at its numbers; of two numbers the longer one is larger."""
    pieces = re.split(r"([0-9]+)", part)
    return [(len(piece), piece) if place % 2 else (0, piece) for place, piece in enumerate(pieces)]


def place_of(diff: GraphDiff, row: ChangedRow) -> str:
    """Name the module of a row."""
    return OUTSIDE if row.is_outside else shown_path(row.module, model_of(diff, row))


def model_of(diff: GraphDiff, change: ChangedRow | ModuleChange | LeafChange) -> str:
    """Say what the program calls its model: that of A for what only A has."""
    return diff.model_names[0 if change.kind in {"removed", "lost"} else 1]


def names_of_leaves(diff: GraphDiff, changes: Iterable[LeafChange]) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of leaves as they are shown, those of equal blocks as one, with all of their names."""
    model = {change.name: model_of(diff, change) for change in changes}
    for name, same in fold_leaves(model, one_sided_modules(diff)):
        yield shown_path(name, model[same[0]]), same


def field_of(detail: Detail) -> str:
    """Name what differs of a node: `saved mat1`, `output`."""
    name = "" if detail.field in NAMELESS else detail.name
    return " ".join(filter(None, (FIELD_WORDS.get(detail.field, detail.field), name)))


def describe(detail: Detail) -> str:
    """Write what differs of a node as text."""
    return f"{field_of(detail)}: {change_of(detail)}"


def change_of(changed: Detail | ChangedLine) -> str:
    """Write what was and what is: `relu → gelu`."""
    return f"{changed.before or '(none)'} → {changed.after or '(none)'}"


def described(diff: GraphDiff, row: ChangedRow, limit: int | None = None) -> list[str]:
    """Write what differs in a row as texts, the first few of many, and which module is unlike the others."""
    odd = [] if row.odd_one is None else [odd_words(row.odd_one, model_of(diff, row))]
    return [*map(describe, row.details[:limit]), *odd]


def odd_words(odd: OddOne, model: str) -> str:
    """Write which module of a row is unlike the others."""
    return f"{shown_path(odd.name, model)}: {format_times(odd.times)} the others"


def one_sided_modules(diff: GraphDiff) -> list[str]:
    """List the paths of modules that only one graph has."""
    return [change.before or change.after for change in diff.module_changes if change.kind in MODULE_WORDS]


def modules_of_group(diff: GraphDiff, *, is_one: bool) -> str:
    """Say which modules a group of captures lacks, or has in addition: `, has no h.3`; "" if they are the same."""
    lacking = [change.before for change in diff.module_changes if change.kind == "removed"]
    having = [change.after for change in diff.module_changes if change.kind == "added"]
    before, after = diff.model_names
    parts = [f"no {_few(lacking, before)}"] * bool(lacking) + [f"also {_few(having, after)}"] * bool(having)
    return f", {'has' if is_one else 'have'} {' and '.join(parts)}" if parts else ""


def _few(paths: Sequence[str], model: str) -> str:
    shown = [name for name, _ in fold_names(shown_path(path, model) for path in paths)]
    more = f" and {len(shown) - MAX_MODULES:,} more" if len(shown) > MAX_MODULES else ""
    return ", ".join(shown[:MAX_MODULES]) + more


def first_values(values: ValueDiff, model: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield the first value that differs in each direction: the direction, where it is, and how far it is off."""
    for direction, first in (("forward", values.first_forward), ("backward", values.first_backward)):
        if first is not None:
            module = shown_path(first.module, model) if first.module else ""
            output = f" output {first.output_nr}" if first.output_nr else ""
            where = [part for part in (f"{first.name}{output}", module, first.line) if part]
            yield direction, where, how_far(first.distance)


def how_far(distance: Distance) -> str:
    """Describe a distance: relative to the norm, and in itself."""
    if not math.isfinite(distance.relative):
        return "more elements are NaN or Inf in one of them"
    order = ", the same elements in another order" if distance.is_reordered else ""
    return f"differs by {distance.relative:.1e} of its norm, {distance.absolute:.1e} in all{order}"


def value_summary(values: ValueDiff) -> str:
    """Say how many values differ, in one sentence without its full stop."""
    outputs, gradients = format_count(values.num_outputs, "output"), format_count(values.num_gradients, "gradient")
    counts = "no output and no gradient" if values.is_empty else f"{outputs} and {gradients}"
    rounded = f"; {values.num_rounded:,} more by rounding, at most {values.largest_rounded:.1e}"
    differ = "differs" if values.is_empty else "differ"
    return f"{counts} of {values.num_compared:,} compared {differ}{rounded if values.num_rounded else ''}"


def first_alike(call: CallDiff, earlier: Sequence[CallDiff]) -> CallDiff | None:
    """Return the first of earlier calls in which all the same has changed."""
    if call.diff.is_empty or call.diff.values is not None:
        return None
    return next((one for one in earlier if _changes(one.diff) == _changes(call.diff)), None)


def _changes(diff: GraphDiff) -> tuple[object, ...]:
    """Return what is said of a comparison, whatever the numbers of the nodes are."""
    rows = tuple(replace(row, nodes_before=(), nodes_after=()) for row in diff.rows)
    return rows, diff.leaf_changes, diff.module_changes


def step_summary(step: StepDiff) -> str:
    """Say which calls were compared and which of them differ, in one sentence without its full stop."""
    equal = [call.name for call in step.calls if call.diff.is_empty]
    other = [call.name for call in step.calls if not call.diff.is_empty]
    if not other:
        return f"{_listed(equal)} compared: no difference{' in what both have' if step.unmatched else ''}"
    differs = f"{_listed(other)} {'differs' if len(other) == 1 else 'differ'}"
    return f"{differs}, {_listed(equal)} {'is' if len(equal) == 1 else 'are'} equal" if equal else differs


def _listed(calls: Sequence[str]) -> str:
    """Name calls, those of one kind together: `backward #1, #2 and #3`."""
    kinds: dict[str, list[str]] = {}
    for call in calls:
        kind, _, number = call.rpartition(" ")
        kinds.setdefault(kind, []).append(number)
    parts = [f"{kind} {number}".lstrip() if not place else number
             for kind, numbers in kinds.items() for place, number in enumerate(numbers)]  # fmt: skip
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def class_words(diff: GraphDiff, arrow: str = "→") -> str:
    """Say of which classes there are more or fewer nodes: `GeluBackward0 32 → 0`; "" where few rows say it."""
    if len(apart_from_lines(diff.rows)[0]) <= MANY_ROWS:
        return ""
    told = [f"{name} {pair.before:,} {arrow} {pair.after:,}" for name, pair in diff.classes.items()]
    rest = [f"{len(told) - MAX_CLASSES:,} more"] if len(told) > MAX_CLASSES else []
    return ", ".join([*told[:MAX_CLASSES], *rest])


def summary(diff: GraphDiff) -> str:
    """Say how much differs, in one sentence without its full stop."""
    leaves = [change.kind for change in diff.leaf_changes]
    counts = (
        (len(diff.added), "node", "added"),
        (len(diff.removed), "node", "removed"),
        (len(diff.changed), "node", "changed"),
        (leaves.count("lost") + leaves.count("frozen"), "leaf", "without a gradient now"),
        (leaves.count("gained") + leaves.count("unfrozen"), "leaf", "with a gradient now"),
        (leaves.count("renamed") + leaves.count("changed"), "leaf", "changed"),
        (len(diff.module_changes), "module", "changed"),
    )
    words = [f"{format_count(count, noun, 'leaves' if noun == 'leaf' else None)} {verb}"
             for count, noun, verb in counts if count]  # fmt: skip
    if diff.values is not None and not diff.values.is_empty:
        words.append("values differ")
    held = [f"{format_change(diff.held_bytes.change)} held"] if diff.is_held_changed else []
    return ", ".join([*words, *held]) or "No difference"
