"""Format numbers and shapes for people: bytes, counts, `f32[2, 3]`."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gradinspect.errors import GradInspectError

if TYPE_CHECKING:
    from gradinspect.graph import CallKind, Size, TensorInfo

DTYPE_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex128": "c128", "complex64": "c64", "complex32": "c32", "bool": "bool",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
}  # fmt: skip

MAX_DIGITS = 18  # of a whole number, which then fits 64 bits
LONGEST_PATTERN = 1000
MAX_SIZE = 2.0**63  # bytes, as torch counts them
MAX_WORD, MAX_SENTENCES = 300, 2000  # characters in a message, which may quote all that a command line can hold


def format_bytes(num_bytes: int, digits: int = 1) -> str:
    """Write a byte count with a binary unit: `0 B`, `24 B`, `1.5 KiB`, `51.1 MiB`."""
    if num_bytes < 1024:
        return f"{num_bytes} B"
    size = num_bytes / 1024
    for unit in ("KiB", "MiB", "GiB"):
        if round(size, digits) < 1024:
            return f"{size:.{digits}f} {unit}"
        size /= 1024
    return f"{size:.{digits}f} TiB"


def format_beside(num_bytes: int, other: int | None) -> str:
    """Write a byte count so that it differs from one beside it, such as a limit: `1.03 MiB` beside `1.0 MiB`."""
    for digits in (1, 2, 3):
        text = format_bytes(num_bytes, digits)
        if other is None or other == num_bytes or text != format_bytes(other, digits):
            return text
    return f"{num_bytes:,} B"


def format_change(num_bytes: int) -> str:
    """Write a difference of byte counts with its sign: `+48.0 MiB`, `-24 B`."""
    return f"{'-' if num_bytes < 0 else '+'}{format_bytes(abs(num_bytes))}"


def format_growth(change: int, before: int) -> str:
    """Write a change as a share of what was there before, never as none: `+48.2%`, `-0.5%`, `<0.1%`."""
    share = 100 * change / before
    return f"{share:+.1f}%" if abs(share) >= 0.05 else "<0.1%"


def format_held(held: int, weights: int) -> str:
    """Write what is held because of backward, and beside it the weights, which are in memory anyway."""
    beside = f" ({format_weights(weights)})" if weights else ""
    return f"{format_bytes(held)} held{beside}"


def format_weights(weights: int) -> str:
    """Write the bytes of saved parameters and buffers, which are never part of what is held."""
    return f"+ {format_bytes(weights)} of weights, in memory anyway"


def format_flops(count: int) -> str:
    """Write a count of floating point operations with a decimal prefix: `240`, `1.9 k`, `2.5 G`."""
    size = float(count)
    for prefix in ("", " k", " M", " G", " T"):
        if round(size, 1) < 1000:
            return f"{size:.1f}{prefix}" if prefix else str(count)
        size /= 1000
    return f"{size:,.1f} P"


def format_share(part: int, whole: int) -> str:
    """Write a share of a total: `37%`, `<1%`; `100%` only of all of it."""
    share = 100 * part / whole if whole else 0
    if share < 1:
        return "<1%"
    return f"{share:.0f}%" if share < 99.5 or part >= whole else ">99%"


def call_name(kind: "CallKind", number: int | None = None) -> str:
    """Name an engine call: `backward #2`, `autograd.grad #1`. Each kind has its own numbers."""
    name = "autograd.grad" if kind == "grad" else "backward"
    return name if number is None else f"{name} #{number}"


def format_calls(backwards: int, grads: int) -> str:
    """Count calls of both kinds: `2 backward calls and 1 autograd.grad call`."""
    counts = ((backwards, "backward call"), (grads, "autograd.grad call"))
    return " and ".join(format_count(count, name) for count, name in counts if count) or "no backward call"


def format_ranges(numbers: Iterable[int]) -> str:
    """List numbers: `0-5, 7`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def parse_whole(text: str) -> int | None:
    """Read a whole number from the user: decimal digits, at most 18, so that it fits wherever one is kept."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def parse_bytes(text: str) -> int:
    """Read a byte count with or without a unit: `24`, `1.5 KiB`, `2MB`, `1G`; units are powers of 1024.

    Raises:
        GradInspectError: It is not a valid size.
    """
    match = (
        None
        if len(text) > MAX_WORD
        else re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.ASCII | re.IGNORECASE)
    )
    size = 0.0 if match is None else float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")
    if match is None or size >= MAX_SIZE:
        raise GradInspectError(
            f"'{text}' is not a valid size.", "Give a number of bytes, or one with a unit: 512KiB, 1MiB, 2GiB."
        )
    return round(size)


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: `1 node`, `1,024 nodes`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def format_ordinal(number: int) -> str:
    """Write a place in an order: `1st`, `2nd`, `11th`, `1,023rd`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ending}"


def format_dtype(dtype: str) -> str:
    """Shorten a dtype, `float32` to `f32`; leave unknown ones unchanged."""
    return DTYPE_NAMES.get(dtype, dtype)


def format_tensor(info: "TensorInfo") -> str:
    """Write a tensor's dtype, shape and anything unusual: `f32[2, 3]`, `f32[4] cuda:0 sparse_coo`.

    Of a DTensor the shape of all ranks, and beside it what this rank has, if that is a part: `f32[8, 4] local [2, 4]`.
    """
    text = f"{format_dtype(info.dtype)}{format_shape(info.shape)}"
    is_part = info.local_shape is not None and info.local_shape != info.shape
    unusual = (
        "" if info.device == "cpu" else info.device,
        "" if info.layout == "strided" else info.layout,
        info.subclass.rpartition(".")[2] if info.subclass and not is_part else "",
        f"local {format_shape(info.local_shape)}" if is_part and info.local_shape is not None else "",
    )
    return " ".join((text, *filter(None, unusual)))


def format_shape(shape: "tuple[Size, ...]") -> str:
    """Write a shape: `[2, 3]`."""
    return f"[{', '.join(map(str, shape))}]"


def escape_control(text: str) -> str:
    r"""Escape control and invisible characters: ESC to `\x1b`, a newline to `\n`, a bidi override to `\u202e`.

    Visible characters of any script stay unchanged. So do backslashes, so the result is for reading, not for decoding.
    Lone surrogates are escaped too, so the result can always be encoded as UTF-8.
    """
    if is_harmless(text):
        return text
    return "".join(char if is_harmless(char) else char.encode("unicode_escape").decode("ascii") for char in text)


def is_harmless(text: str) -> bool:
    """Return whether a terminal shows every character, with the width that we count for it.

    Variation selector 16 is printable, but on some terminals it turns the preceding digit into a two-cell emoji.
    """
    return text.isprintable() and "\ufe0f" not in text


def brief(text: str, limit: int = 200) -> str:
    """Escape a text for use in a message, and cut its middle beyond `limit` characters."""
    text = escape_control(text if len(text) <= 2 * limit else text[:limit] + text[-limit:])
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[1 - limit // 2 :]}"


def readable(text: str) -> str:
    """Make one line of sentences in which no word, and not all of it, is longer than a reader would read."""
    words = [brief(word) if len(word) > MAX_WORD else word for word in text.split()]
    return brief(" ".join(words), MAX_SENTENCES)


def name_matches(name: str, pattern: str) -> bool:
    """Return whether a name is one, or one that a pattern with `*`, `?` and `[]` describes.

    Python reads a pattern in a time that grows with the square of its length: no name is as long as those left out.
    """
    return name == pattern or (len(pattern) <= LONGEST_PATTERN and fnmatchcase(name, pattern))
