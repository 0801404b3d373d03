"""Graph to the bytes of a capture file: an envelope of JSON, one node a line, so that two captures diff well in git."""

import gzip
import io

import msgspec

from gradinspect.graph import Graph

FORMAT = "gradinspect"
SCHEMA_VERSION = 1  # raise it with every change of `graph.py` that an older reader would refuse

_ENCODER = msgspec.json.Encoder(order="deterministic")


def encode_graph(graph: Graph, *, compressed: bool) -> bytes:
    r"""Write a graph as a capture file; equal graphs give equal bytes.

    A lone surrogate (Python's stand-in for a byte of a file name that is not UTF-8) has no place in JSON and becomes
    its escape, `\udcff` as six characters.
    """
    try:
        content = _encode_envelope(graph)
    except UnicodeEncodeError:
        content = _encode_envelope(msgspec.convert(_escape_surrogates(msgspec.to_builtins(graph)), Graph))
    return _compress(content) if compressed else content


def _encode_envelope(graph: Graph) -> bytes:
    fields = b",\n".join(
        b'"%s":%s' % (name.encode(), _encode_field(getattr(graph, name))) for name in Graph.__struct_fields__
    )
    return b'{"format":"%s","version":%d,"graph":{\n%s\n}}\n' % (FORMAT.encode(), SCHEMA_VERSION, fields)


def _encode_field(value: object) -> bytes:
    if not isinstance(value, tuple) or not value:
        return _ENCODER.encode(value)
    lines = _ENCODER.encode_lines(value).rstrip(b"\n")
    return b"[\n%s\n]" % lines.replace(b"\n", b",\n")  # inside a JSON string a newline is always escaped


def _escape_surrogates(value: object) -> object:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_escape_surrogates(key): _escape_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [_escape_surrogates(item) for item in value]
        case _:
            return value


def _compress(content: bytes) -> bytes:
    buffer = io.BytesIO()
    # Not gzip.compress: it lets zlib name the operating system in the header, so the bytes would differ.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()
