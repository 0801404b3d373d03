"""Decode the bytes of a capture file to a Graph, or report what is wrong, and where."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, BinaryIO

import msgspec
from msgspec.structs import replace

from gradinspect.errors import GradInspectError, is_address_space_limited
from gradinspect.graph import Gradients, Graph, NodeValues
from gradinspect.storage.checks import InvalidPlaceError, check_gradients, check_graph, check_values
from gradinspect.storage.encoding import FORMAT, SCHEMA_VERSION
from gradinspect.storage.unpacking import AGAIN, MAKE, MAX_BYTES, read_content
from gradinspect.units import brief

_DECODED = 6  # times as many bytes as in the file: 3.6 and 4.6 were measured, of large graphs


class _Envelope(msgspec.Struct):
    format: str
    version: Annotated[int, msgspec.Meta(ge=1)]
    graph: msgspec.Raw
    gradients: msgspec.Raw = msgspec.Raw(b"null")
    values: msgspec.Raw = msgspec.Raw(b"[]")


def decode_graph(content: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> Graph:
    """Decode the bytes of a capture file; see `decode_file`."""
    return decode_file(io.BytesIO(content), name, max_bytes=max_bytes)


def decode_file(file: BinaryIO, name: str, *, max_bytes: int = MAX_BYTES) -> Graph:
    """Read a capture file, plain or gzipped.

    Args:
        file: Open for reading.
        name: The file's name in messages.
        max_bytes: Largest accepted size after unpacking.

    Raises:
        GradInspectError: It is not a valid capture file.
        OSError: It cannot be read.
    """
    label = f'"{brief(name)}"'
    envelope = _open_envelope(read_content(file, label, max_bytes), label)
    with _errors_named(label, "graph"):
        graph = msgspec.json.decode(_with_room(envelope.graph), type=Graph)
        check_graph(graph)
    with _errors_named(label, "gradients"):  # NOTE [Gradients beside the graph] in `encoding`
        gradients = msgspec.json.decode(_with_room(envelope.gradients), type=Gradients | None, strict=False)
        graph = graph if gradients is None else replace(graph, gradients=gradients)
        check_gradients(graph)
    with _errors_named(label, "values"):  # as above
        values = msgspec.json.decode(_with_room(envelope.values), type=tuple[NodeValues, ...], strict=False)
        graph = replace(graph, values=values) if values else graph
        check_values(graph)
    return graph


def _with_room(part: msgspec.Raw) -> msgspec.Raw:
    """Return a part if there is room for what it is decoded to.

    msgspec ends in a segmentation fault where it gets no memory, as under `ulimit -v`.

    Raises:
        MemoryError: There is not.
    """
    if is_address_space_limited():
        bytearray(_DECODED * len(memoryview(part)))  # takes addresses, and no pages
    return part


@contextmanager
def _errors_named(label: str, part: str) -> Iterator[None]:
    """Turn any error in a part of the file into a message with the place."""
    try:
        yield
    except InvalidPlaceError as error:
        raise _invalid(label, part + error.place, error.reason) from None
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        raise _invalid(label, part + place.rstrip("`"), reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(label, part, _reason_of(error)) from None


def _open_envelope(content: bytes | bytearray, label: str) -> _Envelope:
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
    except msgspec.ValidationError:
        raise GradInspectError(f"{label} is not a capture file: it is JSON of another kind.", MAKE) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not content.startswith(b'{"format":"%s"' % FORMAT.encode()):
            raise GradInspectError(f"{label} is not a capture file: it is not JSON.", MAKE) from None
        raise GradInspectError(f"Capture file {label} is broken: {_reason_of(error)}.", AGAIN) from None
    if envelope.format != FORMAT:
        raise GradInspectError(f'{label} is not a capture file: its format is "{brief(envelope.format)}".', MAKE)
    if envelope.version > SCHEMA_VERSION:
        raise GradInspectError(
            f"Capture file {label} has schema version {envelope.version}, newer than {SCHEMA_VERSION}.",
            "Install a newer gradinspect.",
        )
    return envelope


def _invalid(label: str, place: str, reason: str) -> GradInspectError:
    return GradInspectError(f"Capture file {label} is not valid at {place}: {brief(reason)}.", AGAIN)


def _reason_of(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if "truncated" in str(error):
        return "it is truncated"
    position = re.search(r"\(byte (\d+)\)", str(error))
    return f"it is not JSON at byte {position[1]}" if position else "it is not JSON"
