"""Encode a Graph as a capture file: JSON with one node per line, so that captures diff well in git.

NOTE [Gradients beside the graph]
Gradients may be infinite or NaN, which JSON numbers cannot express and which users look for. So gradients are written
beside the graph, with such values as the text `nan`, `inf` or `-inf`; only there is text read as a number. So are
fingerprints of values. A reader that does not know them skips them. Times are left out, so that equal runs give equal
bytes.
"""

import gzip
import io
import json
import math
import re
from collections.abc import Iterable, Iterator

import msgspec

from gradinspect.graph import Gradients, Graph
from gradinspect.units import is_harmless

FORMAT = "gradinspect"
SCHEMA_VERSION = 1  # increment with every change of `graph.py` that an older reader would reject
MAX_LINES = 10_000  # encoded at a time: a million lines at once need hundreds of megabytes twice
NOT_PRINTABLE_ASCII = re.compile(r"[^\n -~]+")
_ENCODER = msgspec.json.Encoder(order="deterministic")
_ESCAPED = msgspec.json.Encoder()  # of dicts that stand for records: their keys are in the order of the fields


def encode_graph(graph: Graph, *, compressed: bool) -> bytes:
    r"""Write a graph as a capture file; equal graphs give equal bytes.

    Control and invisible characters are written as JSON escapes, so a capture can be viewed as text. A lone surrogate
    (Python's placeholder for a non-UTF-8 byte of a file name) is not valid in JSON and becomes its escape, the six
    characters `\udcff`.
    """
    return finished(_envelope(graph), compressed=compressed)


def finished(pieces: Iterable[bytes], *, compressed: bool) -> bytes:
    """Escape what cannot be seen in JSON, and pack it, one piece after another."""
    shown = (one if one.isascii() and b"\x7f" not in one else _escape_hidden(one) for one in pieces)
    if compressed:
        return _compress(shown)
    buffer = io.BytesIO()  # `join` would hold all of it twice
    buffer.writelines(shown)
    return buffer.getvalue()


def escape_surrogates(value: object) -> object:
    """Escape in all texts what UTF-8 cannot express."""
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {escape_surrogates(key): escape_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [escape_surrogates(item) for item in value]
        case _:
            return value


def _escape_hidden(content: bytes) -> bytes:
    """Escape unprintable characters above 0x7f; the encoder has escaped those below."""
    text = content.decode()
    return NOT_PRINTABLE_ASCII.sub(_json_escapes, text).encode()


def _json_escapes(match: re.Match[str]) -> str:
    text = match[0]
    if is_harmless(text):
        return text
    return "".join(char if is_harmless(char) else _json_escape(char) for char in text)


def _json_escape(char: str) -> str:
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def _envelope(graph: Graph) -> Iterator[bytes]:
    fields = {name: getattr(graph, name) for name in Graph.__struct_fields__ if name not in {"gradients", "values"}}
    yield b'{"format":"%s","version":%d,"graph":' % (FORMAT.encode(), SCHEMA_VERSION)
    yield from _encode_fields(fields)
    if graph.gradients is not None:
        yield b',"gradients":'
        yield from _encode_gradients(graph.gradients)
    if graph.values:
        yield b',"values":'
        yield from _encode_field(_name_nonfinite(msgspec.to_builtins(graph.values)))
    yield b"}\n"


def _encode_gradients(gradients: Gradients) -> Iterator[bytes]:
    """Encode the gradients. NOTE [Gradients beside the graph]."""
    fields = msgspec.to_builtins(gradients)
    for node in fields["nodes"]:
        node.pop("seconds", None)
    yield from _encode_fields({name: _name_nonfinite(value) for name, value in fields.items()})


def _encode_fields(fields: dict[str, object]) -> Iterator[bytes]:
    for place, (name, value) in enumerate(fields.items()):
        yield b'%s\n"%s":' % (b"," if place else b"{", name.encode())
        yield from _encode_field(value)
    yield b"\n}"


def _encode_field(value: object) -> Iterator[bytes]:
    if not isinstance(value, tuple) or not value:
        yield _encode((value,))
        return
    for start in range(0, len(value), MAX_LINES):
        yield b",\n" if start else b"[\n"
        yield _encode(value[start : start + MAX_LINES])
    yield b"\n]"


def _encode(values: tuple[object, ...]) -> bytes:
    """Encode values, one on a line."""
    try:
        lines = _ENCODER.encode_lines(values)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(values, order="deterministic")
        lines = _ESCAPED.encode_lines([escape_surrogates(one) for one in plain])
    return lines.rstrip(b"\n").replace(b"\n", b",\n")  # newlines inside JSON strings are always escaped


def _name_nonfinite(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(key): _name_nonfinite(item) for key, item in value.items()}
        case list() | tuple():
            return tuple(map(_name_nonfinite, value))
        case _:
            return value


def _compress(pieces: Iterable[bytes]) -> bytes:
    buffer = io.BytesIO()
    # Not gzip.compress, whose header names the operating system, so that the bytes would differ.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        for piece in pieces:
            file.write(piece)
    return buffer.getvalue()
