"""Choose rows by a condition: `bytes>1MiB and module~h.*`.

What comes in: what the user wrote, and which fields a table has. What goes out: a condition, which holds or not for the
values of one row.

A condition compares fields (`=`, `!=`, `<`, `<=`, `>`, `>=`; `~` and `!~` match a pattern), combined with `and`, `or`,
`not` and parentheses. A field may have several values, as a node has shapes: it is enough that one of them fits.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

from gradinspect.errors import GradInspectError
from gradinspect.graph import Record
from gradinspect.units import brief, name_matches, parse_bytes

Value: TypeAlias = str | float | None
ValuesOf: TypeAlias = Callable[[str], Sequence[Value]]
Comparator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "~", "!~"]

EXAMPLE: Final = "bytes>1MiB and module~h.*"
MAX_NESTED: Final = 50
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<sign>[()]|[<>!]=|!~|[=<>~])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()=<>~!"']+))"""
)
_ORDERED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_COMPARATORS: Final = ("=", "!=", "~", "!~", *_ORDERED)


class Comparison(Record, frozen=True):
    """One field compared with a value; `number` is the value in the unit of the field, if it is one."""

    field: str
    comparator: Comparator
    text: str
    number: float | None


class Condition(Record, frozen=True):
    """Comparisons and other conditions of which all, any or none must hold."""

    quantifier: Literal["all", "any", "none"]
    parts: "tuple[Condition | Comparison, ...]"


def parse_condition(text: str, fields: Collection[str]) -> Condition:
    """Read a condition on these fields.

    Raises:
        GradInspectError: It cannot be read, or names a field that the table does not have.
    """
    return _Parser(text, fields).condition()


def fields_in(condition: Condition | Comparison) -> frozenset[str]:
    """Return the fields that a condition compares."""
    return frozenset(asked.field for asked in comparisons_in(condition))


def comparisons_in(condition: Condition | Comparison) -> Iterator[Comparison]:
    """Yield what a condition compares, from left to right."""
    if isinstance(condition, Comparison):
        yield condition
    else:
        for part in condition.parts:
            yield from comparisons_in(part)


def holds(condition: Condition | Comparison, values_of: ValuesOf) -> bool:
    """Return whether a condition holds for a row, given the values of each field."""
    if isinstance(condition, Comparison):
        return _compares(condition, values_of(condition.field))
    found = (holds(part, values_of) for part in condition.parts)
    match condition.quantifier:
        case "all":
            return all(found)
        case "any":
            return any(found)
        case "none":
            return not any(found)


def _compares(asked: Comparison, values: Sequence[Value]) -> bool:
    if asked.comparator.startswith("!"):
        return not any(_equals(asked, value) for value in values)
    if asked.comparator in {"=", "~"}:
        return any(_equals(asked, value) for value in values)
    compare, number = _ORDERED[asked.comparator], asked.number
    return number is not None and any(isinstance(value, int | float) and compare(value, number) for value in values)


def _equals(asked: Comparison, value: Value) -> bool:
    if value is None:
        return asked.text == "none"
    if not isinstance(value, str):
        return value == asked.number or (value != value and asked.text == "nan")  # noqa: PLR0124  # NaN is not itself
    if asked.comparator in {"=", "!="}:
        return value == asked.text
    return name_matches(value, asked.text) or name_matches(value, f"*{asked.text}*")


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str, fields: Collection[str]) -> None:
        self._text = text
        self._fields = fields
        self._tokens: list[tuple[str, bool]] = []  # a text, and whether it was quoted
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None:
                raise self._unreadable(text[position:])
            name = str(found.lastgroup)
            self._tokens.append((found[name], name in {"double", "single"}))
            position = found.end()
        self._next = 0

    def condition(self) -> Condition:
        found = self._any(0)
        if self._next < len(self._tokens):
            raise self._unreadable(self._tokens[self._next][0])
        return found

    def _any(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._takes("or"):
            parts.append(self._all(depth))
        return Condition("any", tuple(parts))

    def _all(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._takes("and"):
            parts.append(self._one(depth))
        return Condition("all", tuple(parts))

    def _one(self, depth: int) -> Condition | Comparison:
        if depth > MAX_NESTED:
            raise self._unreadable("(")
        if self._takes("not"):
            return Condition("none", (self._one(depth + 1),))
        if not self._takes("("):
            return self._comparison()
        inside = self._any(depth + 1)
        if not self._takes(")"):
            raise self._unreadable("(")
        return inside

    def _comparison(self) -> Comparison:
        field, sign, text = self._word(), self._word(), self._word()
        if field not in self._fields:
            raise GradInspectError(
                f'This table has no field "{brief(field)}".', f"Available: {', '.join(sorted(self._fields))}."
            )
        if sign not in _COMPARATORS:
            raise self._unreadable(f"{field} {sign}")
        number = _number(field, text)
        if sign in _ORDERED and number is None:
            raise self._unreadable(f"{field}{sign}{text}")
        return Comparison(field, cast("Comparator", sign), text, number)

    def _word(self) -> str:
        if self._next >= len(self._tokens):
            raise self._unreadable()
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _takes(self, word: str) -> bool:
        is_next = self._next < len(self._tokens) and self._tokens[self._next] == (word, False)
        self._next += is_next
        return is_next

    def _unreadable(self, part: str | None = None) -> GradInspectError:
        """Name the part where reading fails; None: the end, where a comparison is missing."""
        what = "lacks a comparison at its end" if part is None else f'cannot be read at "{brief(part)}"'
        return GradInspectError(f"The condition '{brief(self._text)}' {what}.", f"Write it like '{EXAMPLE}'.")


def _number(field: str, text: str) -> float | None:
    """Read a number: bytes with a unit, FLOPs with a prefix (`2.5G`), a share as `50%`."""
    try:
        if field == "bytes":
            return parse_bytes(text)
        scale = {"%": 1e-2, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}.get(text[-1:].upper())
        return float(text) if scale is None else float(text[:-1]) * scale
    except (GradInspectError, ValueError):
        return None
