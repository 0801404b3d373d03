"""What two capture files must have in common to be equal for a comparison, without decoding their nodes.

What comes in: a file. What goes out: a digest of those parts of its text. Equal records are written as equal text, so
of many equal files only the first has to be decoded.

NOTE [A device of its own]
Each rank of a job has a device of its own, `cuda:3` on rank 3. Between captures of ranks its number does not count as a
difference, unless a capture has several devices of a type.
"""

import hashlib
import re
from pathlib import Path

import msgspec

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.storage.decoding import decode_graph
from gradinspect.storage.encoding import FORMAT, SCHEMA_VERSION, encode_graph
from gradinspect.storage.unpacking import read_content
from gradinspect.user_files import open_file

# As `encoding` writes it; in a text, the quotes would be escaped.
_DEVICE = re.compile(rb'("device":"|"kind":"device","value":")([a-z]+):(\d+)"')


class _Line(msgspec.Struct):
    """A frame, of which only the text of its line is compared."""

    code: msgspec.Raw = msgspec.Raw(b'""')


class _Parts(msgspec.Struct):
    nodes: msgspec.Raw
    roots: msgspec.Raw
    storages: msgspec.Raw = msgspec.Raw(b"[]")
    modules: msgspec.Raw = msgspec.Raw(b"[]")
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    model_name: msgspec.Raw = msgspec.Raw(b'""')
    frames: tuple[_Line, ...] = ()


class _Comparable(msgspec.Struct):
    format: str
    version: int
    graph: _Parts
    values: msgspec.Raw = msgspec.Raw(b"[]")


def comparable_digest(path: Path, *, are_ranks: bool = False) -> bytes | None:
    """Return what is the same for files that are equal for a comparison, whatever their programs are called.

    Args:
        path: The file.
        are_ranks: Whether it is of a rank: NOTE [A device of its own].

    Returns:
        A digest; None if the file cannot be read, in which case reading it as a whole says what is wrong.
    """
    try:
        with open_file(path) as file:
            content = read_content(file, "")
        found = msgspec.json.decode(_unnumbered(content) if are_ranks else content, type=_Comparable)
    except (OSError, GradInspectError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found.format != FORMAT or found.version != SCHEMA_VERSION:
        return None
    digest = hashlib.sha256()
    parts = (getattr(found.graph, name) for name in _Parts.__struct_fields__ if name != "frames")
    for part in (*parts, found.values, *(line.code for line in found.graph.frames)):
        digest.update(part)
        digest.update(b"\n")
    return digest.digest()


def without_own_device(graph: Graph) -> Graph:
    """Return a rank's graph without the number of its device. NOTE [A device of its own]."""
    content = encode_graph(graph, compressed=False)
    changed = _unnumbered(content)
    return graph if changed is content else decode_graph(bytes(changed), graph.source)


def _unnumbered(content: bytes | bytearray) -> bytes | bytearray:
    devices = {(kind, number) for _, kind, number in _DEVICE.findall(content)}
    has_one_of_each = len({kind for kind, _ in devices}) == len(devices)
    return _DEVICE.sub(rb'\1\2"', content) if devices and has_one_of_each else content
