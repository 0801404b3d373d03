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

import msgspec

from gradinspect.graph import Gradients, Graph
from gradinspect.units import is_harmless

FORMAT = "gradinspect"
SCHEMA_VERSION = 1  # increment with every change of `graph.py` that an older reader would reject
NOT_PRINTABLE_ASCII = re.compile(r"[^\n -~]+")
_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode_graph(graph: Graph, *, compressed: bool) -> bytes:
    r"""Write a graph as a capture file; equal graphs give equal bytes.

    Control and invisible characters are written as JSON escapes, so a capture can be viewed as text. A lone surrogate
    (Python's placeholder for a non-UTF-8 byte of a file name) is not valid in JSON and becomes its escape, the six
    characters `\udcff`.
    """
    try:
        content = _encode_envelope(graph)
    except UnicodeEncodeError:
        content = _encode_envelope(msgspec.convert(escape_surrogates(msgspec.to_builtins(graph)), Graph))
    return finished(content, compressed=compressed)


def finished(content: bytes, *, compressed: bool) -> bytes:
    """Escape what cannot be seen in JSON, and pack it."""
    content = content if content.isascii() and b"\x7f" not in content else _escape_hidden(content)
    return _compress(content) if compressed else content


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


def _encode_envelope(graph: Graph) -> bytes:
    fields = {name: getattr(graph, name) for name in Graph.__struct_fields__ if name not in {"gradients", "values"}}
    beside = b"" if graph.gradients is None else b',"gradients":' + _encode_gradients(graph.gradients)
    if graph.values:
        beside += b',"values":' + _encode_field(_name_nonfinite(msgspec.to_builtins(graph.values)))
    head = b'{"format":"%s","version":%d' % (FORMAT.encode(), SCHEMA_VERSION)
    return b'%s,"graph":%s%s}\n' % (head, _encode_fields(fields), beside)


def _encode_gradients(gradients: Gradients) -> bytes:
    """Encode the gradients. NOTE [Gradients beside the graph]."""
    fields = msgspec.to_builtins(gradients)
    for node in fields["nodes"]:
        node.pop("seconds", None)
    return _encode_fields({name: _name_nonfinite(value) for name, value in fields.items()})


def _encode_fields(fields: dict[str, object]) -> bytes:
    lines = b",\n".join(b'"%s":%s' % (name.encode(), _encode_field(value)) for name, value in fields.items())
    return b"{\n%s\n}" % lines


def _encode_field(value: object) -> bytes:
    if not isinstance(value, tuple) or not value:
        return _ENCODER.encode(value)
    lines = _ENCODER.encode_lines(value).rstrip(b"\n")
    return b"[\n%s\n]" % lines.replace(b"\n", b",\n")  # newlines inside JSON strings are always escaped


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


def _compress(content: bytes) -> bytes:
    buffer = io.BytesIO()
    # Not gzip.compress, whose header names the operating system, so that the bytes would differ.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()
