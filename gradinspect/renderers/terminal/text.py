"""Text for a terminal: nothing in it can move the cursor, and it never exceeds its width.

What comes in: strings, some of them from the user's program. What goes out: strings of known width.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, takewhile
from textwrap import TextWrapper
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from gradinspect.units import escape_control, is_harmless

MIN_CELLS = 10  # of a shortened part
MIN_LETTERS = 3  # of a part of a dotted name
DIGITS: Final = re.compile(r"[0-9]+(?:[-,.]+[0-9]+)*")  # `3`, `0-3`, `1,2,4`, `0,1..7`
NUMBERS: Final = "0123456789-,"  # of a folded part: `up1-4`
DOT: Final = re.compile(r"\.")


class Part(NamedTuple):
    """A piece of a row."""

    text: str
    style: str = ""
    can_shrink: bool = False  # a long name keeps both ends
    is_optional: bool = False  # dropped first; one with a brief form after that, the last first
    can_wrap: bool = False  # may go on a line of its own
    brief: str = ""  # what is said instead, before a name is shortened: "Conv" for "ConvBackward0"
    is_brief_last: bool = False  # columns beside the row and what is optional give way before it is said briefly


def visible(text: str, *, unicode: bool) -> str:
    r"""Write control and invisible characters as escapes, such as `\x1b`; without `unicode`, all but ASCII."""
    text = escape_control(text)
    return text if unicode else text.encode("ascii", errors="backslashreplace").decode()


def listed_within(parts: Sequence[str], width: int, more: Callable[[int], str], *, least: int = 0) -> str:
    """List as many parts as fit, and count the rest, in time that does not depend on how many there are.

    Args:
        parts: In words that can be shown.
        width: Cells.
        more: Says how many are left out.
        least: How many are listed even if they do not fit.
    """
    shown, length = list[str](), 0
    for part in parts:
        shown.append(part)
        length += cell_len(part) + 2
        if length > width + 2 and len(shown) >= least:
            break
    while True:
        rest = len(parts) - len(shown)
        line = ", ".join([*shown, *([more(rest)] if rest else [])])
        if cell_len(line) <= width or len(shown) <= least:
            return line
        shown.pop()


def harmless(line: Text | str) -> Text | str:
    """Return a line unchanged, or plain and escaped if it still contains control characters.

    Names are normally escaped when the line is written, because its width depends on it; this is the last guard.
    """
    text = line.plain if isinstance(line, Text) else line
    return line if is_harmless(text) else escape_control(text)


def shorten(text: str, num_cells: int, ellipsis: str) -> str:
    """Shorten a text that is too wide by cutting its middle."""
    if cell_len(text) <= num_cells:
        return text
    room = num_cells - cell_len(ellipsis)
    if room < 2:
        return ellipsis[: max(num_cells, 0)]
    return _start(text, room - room // 2) + ellipsis + _start(text[::-1], room // 2)[::-1]


def cut_end(text: str, num_cells: int, ellipsis: str) -> str:
    """Shorten a text that is too wide by cutting its end."""
    if cell_len(text) <= num_cells:
        return text
    return _start(text, max(num_cells - cell_len(ellipsis), 0)) + ellipsis[: max(num_cells, 0)]


def cut_start(text: str, num_cells: int, ellipsis: str) -> str:
    """Shorten a text that is too wide by cutting its start."""
    if cell_len(text) <= num_cells:
        return text
    return ellipsis[: max(num_cells, 0)] + _start(text[::-1], max(num_cells - cell_len(ellipsis), 0))[::-1]


def shorten_apart(
    names: Sequence[str], num_cells: int, ellipsis: str, cut: Callable[[str, int, str], str] | None = None
) -> list[str]:
    """Shorten names that are too wide, so that no two different ones become alike.

    The end of a dotted name tells it from its neighbors, so parts are cut from its start: `…h.11.mlp.weight`. Where
    that would make two alike, or leave only indices to tell them apart, one part is cut, `vision_back….norm`, or what
    is between the first one and the end: `down1…conv.weight`. Where these are alike, each of their parts keeps its
    start, but for what all names begin with: `…feed….0-3.norm`; where these are alike too, both are cut in other
    places, and numbered if they differ nowhere that can be shown.

    Args:
        names: Those that stand below each other.
        num_cells: The room.
        ellipsis: For what is left out.
        cut: How names that are not dotted are cut rather than in the middle.
    """
    taken = {name for name in names if cell_len(name) <= num_cells}
    shortened = {name: name for name in taken}
    long = {*names} - taken
    head = _shared_head(long)
    ways = ({*_dotted_cuts(name, head, num_cells, ellipsis), shorten(name, num_cells, ellipsis)} for name in long)
    common = Counter(chain.from_iterable(ways))
    ambiguous = {cut for cut, count in common.items() if count > 1} | _cut_to_indices(long, head, num_cells, ellipsis)
    ambiguous |= {ellipsis + name[found.end() :] for name in taken for found in DOT.finditer(name)}
    for name in names:
        if name not in shortened:
            first = () if cut is None or "." in name else (cut(name, num_cells, ellipsis),)
            cuts = chain(first, _cuts(name, head, num_cells, ellipsis), _numbered(name, num_cells, ellipsis))
            shortened[name] = next(cut for cut in cuts if cut not in taken and cut not in ambiguous)
            taken.add(shortened[name])
    return [shortened[name] for name in names]


def _cuts(name: str, head: str, num_cells: int, ellipsis: str) -> Iterator[str]:
    yield from _dotted_cuts(name, head, num_cells, ellipsis)
    yield shorten(name, num_cells, ellipsis)
    room = num_cells - cell_len(ellipsis)
    for first in range(room + 1):
        yield _start(name, first) + ellipsis + _start(name[::-1], room - first)[::-1]


def _dotted_cuts(name: str, head: str, num_cells: int, ellipsis: str) -> list[str]:
    """Return a dotted name without its first parts, without the head of all names, and with the start of each part."""
    headless = _starts(name.removeprefix(head), num_cells - cell_len(ellipsis), ellipsis) if head else ""
    starts = [headless and ellipsis + headless, _starts(name, num_cells, ellipsis)]
    first = starts[0] or starts[1]
    cuts = (
        _named_tail(name, head, num_cells, ellipsis),
        first if first.count(ellipsis) == 1 + bool(headless) else "",  # one part was cut
        _both_ends(name, head, num_cells, ellipsis),
        _end_of_long(name, num_cells, ellipsis),
        *starts,
        _tail(name, num_cells, ellipsis),
    )
    return [cut for cut in dict.fromkeys(cuts) if cut]


def _shared_head(names: Iterable[str]) -> str:
    """Return the parts that several names all begin with, with the dot after them: `model.`."""
    split = [name.split(".")[:-1] for name in names]
    same = takewhile(lambda parts: len(set(parts)) == 1, zip(*split, strict=False)) if len(split) > 1 else ()
    return "".join(f"{parts[0]}." for parts in same)


def _cut_to_indices(names: Iterable[str], head: str, num_cells: int, ellipsis: str) -> set[str]:
    """Return names without their first parts that only an index tells apart, though these parts have other names.

    So `up.conv0.norm` and `down.conv1.norm` are not cut to `…conv0.norm` and `…conv1.norm`.
    """
    tails = {name: tail for name in names if (tail := _named_tail(name, head, num_cells, ellipsis))}
    heads: dict[str, set[str]] = {}
    for name, tail in tails.items():
        cut = name.removesuffix(tail.removeprefix(ellipsis))
        heads.setdefault(DIGITS.sub("*", tail), set()).add(DIGITS.sub("*", cut))
    return {tail for tail in tails.values() if len(heads[DIGITS.sub("*", tail)]) > 1}


def _tail(name: str, num_cells: int, ellipsis: str) -> str:
    """Cut parts from the start of a dotted name; "" if that cannot be: it is indented, or one part fills the room."""
    parts = cut_start(name, num_cells, ellipsis)[len(ellipsis) :].partition(".")[2]
    return ellipsis + parts if parts and "  " not in name else ""


def _named_tail(name: str, head: str, num_cells: int, ellipsis: str) -> str:
    """Cut parts from the start of a dotted name, but not the name of an index: it says nothing without that.

    The index is cut with its name where all names have both, in their head.
    """
    tail = _tail(name, num_cells, ellipsis)
    index, _, rest = tail.removeprefix(ellipsis).partition(".")
    if not DIGITS.fullmatch(index):
        return tail
    return ellipsis + rest if rest and head.startswith(name.removesuffix(rest)) else ""


def _both_ends(name: str, head: str, num_cells: int, ellipsis: str) -> str:
    """Keep the first part and as many of the last as fit, `down1…double_conv.1`; "" if that cannot be.

    An index keeps the name before it. The head of all names is no first part, unless an index or the last part follows.
    """
    without, parts = name.removeprefix(head), name.split(".")
    if "  " in name or DIGITS.fullmatch(parts[0]):
        return ""
    is_headless = without != name and "." in without and not DIGITS.fullmatch(without.partition(".")[0])
    parts = without.split(".") if is_headless else parts
    num_first = 1 + sum(1 for _ in takewhile(DIGITS.fullmatch, parts[1:]))
    start = (ellipsis if is_headless else "") + ".".join(parts[:num_first]) + ellipsis
    ends = (parts[at:] for at in range(num_first + 1, len(parts)) if not DIGITS.fullmatch(parts[at]))
    return next((cut for end in ends if cell_len(cut := start + ".".join(end)) <= num_cells), "")


def _end_of_long(name: str, num_cells: int, ellipsis: str) -> str:
    """Keep the start of the last part, if this alone is too wide, as the name of a class; "" if that says little."""
    last = name.rpartition(".")[2]
    room = num_cells - cell_len(ellipsis)
    if last == name or "  " in name or cell_len(last) <= room or room < MIN_CELLS + cell_len(ellipsis):
        return ""
    return ellipsis + cut_end(last, room, ellipsis)


def _starts(name: str, num_cells: int, ellipsis: str) -> str:
    """Keep the start of each part of a dotted name, and if it can be all of the last; "" if that leaves too little."""
    parts = name.split(".")
    if len(parts) == 1 or "  " in name:
        return ""
    for num_cut in (len(parts) - 1, len(parts)):
        long, whole = parts[:num_cut], parts[num_cut:]
        sizes = list(map(cell_len, long))
        room = num_cells - (len(parts) - 1) - sum(map(cell_len, whole))
        for longest in range(min(room, max(sizes)), MIN_LETTERS + cell_len(ellipsis) - 1, -1):
            if sum(min(size, longest) for size in sizes) <= room:
                return ".".join([*(_cut_stem(part, longest, ellipsis) for part in long), *whole])
    return ""


def _cut_stem(part: str, num_cells: int, ellipsis: str) -> str:
    """Shorten a part of a dotted name, but not the number at its end, which tells it from its neighbors."""
    stem = part.rstrip(NUMBERS)
    room = num_cells - (len(part) - len(stem))
    if stem and room > cell_len(ellipsis) and cell_len(part) > num_cells:
        return cut_end(stem, room, ellipsis) + part[len(stem) :]
    return cut_end(part, num_cells, ellipsis)


def _numbered(name: str, num_cells: int, ellipsis: str) -> Iterator[str]:
    for number in count(2):
        end = f"~{number}"
        yield cut_end(name, num_cells - len(end), ellipsis) + end


def _start(text: str, num_cells: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += cell_len(character)
        if taken > num_cells:
            return text[:index]
    return text


class _Chunk(str):
    """A part of a text whose length is its width on a terminal."""

    __slots__ = ()

    def __len__(self) -> int:
        return cell_len(str(self))


class _CellWrapper(TextWrapper):
    """Wraps a text by the widths of its characters: many take two cells."""

    def _split(self, text: str) -> list[str]:
        return list(map(_Chunk, super()._split(text)))

    def _handle_long_word(self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int) -> None:
        """Break a word that is wider than a line. Source: textwrap.py, Python 3.11."""
        word = str(reversed_chunks[-1])
        if not self.break_long_words or len(word) == cell_len(word):
            super()._handle_long_word(reversed_chunks, cur_line, cur_len, width)
            return
        start = _start(word, max(width - cur_len, 0)) or ("" if cur_line else word[:1])
        if start:
            cur_line.append(_Chunk(start))
            reversed_chunks[-1] = _Chunk(word[len(start) :])


def wrap(text: str, num_cells: int, **options: str | bool) -> list[str]:
    """Break a text into lines of at most `num_cells`, with the options of `textwrap.wrap`."""
    return _CellWrapper(num_cells, **options).wrap(text)  # type: ignore[arg-type]  # each has its own type


def fit(parts: Iterable[Part], num_cells: int, ellipsis: str) -> Text:
    """Join parts in at most `num_cells`: drop optional parts, shorten names, longest first, cut the end.

    A class is spelled as in other rows as long as dropping something else helps.
    """
    fitted = list(parts)
    excess = sum(cell_len(part.text) for part in fitted) - num_cells
    for part in [part for part in fitted if part.is_optional and not part.brief] if excess > 0 else []:
        fitted.remove(part)
        excess -= cell_len(part.text)
    excess = _say_briefly(fitted, excess, are_last=False)
    for part in reversed([part for part in fitted if part.is_optional]):
        if excess > 0:
            fitted.remove(part)
            excess -= cell_len(part.text)
    excess = _say_briefly(fitted, excess, are_last=True)
    excess = _shrink(fitted, _say_whole(fitted, excess), ellipsis)
    text = Text(no_wrap=True, end="")
    for part in fitted:
        text.append(part.text, part.style or None)
    return text if excess <= 0 else _cut(text, num_cells, ellipsis)


def _say_briefly(parts: list[Part], excess: int, *, are_last: bool) -> int:
    """Shorten parts until the line fits, and keep the full text as their brief form; return the excess that is left."""
    for index, part in enumerate(parts):
        if excess > 0 and part.brief and part.is_brief_last == are_last:
            parts[index] = part._replace(text=part.brief, brief=part.text)
            excess -= cell_len(part.text) - cell_len(part.brief)
    return excess


def _say_whole(parts: list[Part], excess: int) -> int:
    """Write parts in full again if what was dropped since has made room; return the excess that is left."""
    for index, part in sorted(enumerate(parts), key=lambda entry: not entry[1].is_brief_last):
        more = cell_len(part.brief) - cell_len(part.text)
        if more > 0 and excess + more <= 0:
            parts[index] = part._replace(text=part.brief, brief=part.text)
            excess += more
    return excess


def _shrink(parts: list[Part], excess: int, ellipsis: str) -> int:
    """Shorten names in place, longest first, until the excess is gone; return what is left of it."""
    sizes = [cell_len(part.text) for part in parts if part.can_shrink]
    longest = _longest(sizes, excess)
    for index, part in enumerate(parts):
        if excess > 0 and part.can_shrink and cell_len(part.text) > longest:
            shorter = shorten(part.text, max(longest, cell_len(part.text) - excess), ellipsis)
            excess -= cell_len(part.text) - cell_len(shorter)
            parts[index] = part._replace(text=shorter)
    return excess


def _longest(sizes: Sequence[int], excess: int) -> int:
    """Choose the length to shorten long names to, no shorter than needed."""
    low, high = MIN_CELLS, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(size - middle, 0) for size in sizes) < excess:
            high = middle - 1
        else:
            low = middle
    return high


def _cut(text: Text, num_cells: int, ellipsis: str) -> Text:
    kept = _start(text.plain, num_cells - cell_len(ellipsis))
    cut = text[: len(kept)] if kept else Text(no_wrap=True, end="")
    cut.append(ellipsis[: max(num_cells, 0)], "dim")
    return cut
