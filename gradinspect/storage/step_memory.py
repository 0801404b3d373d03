"""The memory of whole steps as a file, and back: JSON under a format of its own. Nothing in a file is ever executed."""

from os import fspath
from pathlib import Path
from typing import Annotated

import msgspec

from gradinspect.analyses.memory.step import StepMemory, by_device
from gradinspect.errors import GradInspectError
from gradinspect.storage.encoding import escape_surrogates, finished
from gradinspect.storage.unpacking import read_content
from gradinspect.units import brief
from gradinspect.user_files import open_file

FORMAT = "gradinspect-fit"
VERSION = 1  # increment with every change of `StepMemory` that an older reader would reject
_ENCODER = msgspec.json.Encoder(order="deterministic")
_MAKE = "Create one with `gradinspect fit SCRIPT -o step.json`."


class _Envelope(msgspec.Struct):
    format: str
    version: Annotated[int, msgspec.Meta(ge=1)]
    memory: msgspec.Raw


def encode_step_memory(memory: StepMemory, *, compressed: bool) -> bytes:
    """Write what a step needs; equal records give equal bytes."""
    try:
        encoded = _ENCODER.encode(memory)
    except UnicodeEncodeError:
        encoded = _ENCODER.encode(escape_surrogates(msgspec.to_builtins(memory)))
    head = b'{"format":"%s","version":%d' % (FORMAT.encode(), VERSION)
    return finished((b'%s,"memory":%s}\n' % (head, encoded),), compressed=compressed)


def read_step_memory(path: Path) -> StepMemory:
    """Read such a file, plain or gzipped.

    Raises:
        GradInspectError: It is another file, is not valid, or cannot be read.
    """
    label = f'"{brief(fspath(path.name))}"'
    try:
        with open_file(path) as file:
            content = read_content(file, label)
    except OSError as error:
        raise GradInspectError(f"The file '{path}' cannot be read: {error.strerror}.", "Check the file.") from None
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        envelope = None
    if envelope is None or envelope.format != FORMAT:
        raise GradInspectError(f"{label} has no record of the memory of a whole step.", _MAKE)
    if envelope.version > VERSION:
        reason = f"{label} has version {envelope.version}, newer than {VERSION}."
        raise GradInspectError(reason, "Install a newer gradinspect.")
    try:
        memory = msgspec.json.decode(envelope.memory, type=StepMemory)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GradInspectError(f"{label} is not valid: {brief(str(error))}.", _MAKE) from None
    if not _is_sound(memory):
        raise GradInspectError(f"{label} is not valid: its numbers contradict each other.", _MAKE)
    return memory


def _is_sound(memory: StepMemory) -> bool:
    """Return whether what is alive adds up on each device. The rest of the package relies on it."""
    return all(map(_is_sound_there, by_device(memory)))


def _is_sound_there(memory: StepMemory) -> bool:
    """Return whether what is alive adds up, at the peak and along the curve."""
    sizes = [row.num_bytes for row in memory.alive] + [span.num_bytes for span in memory.spans]
    return (
        min(sizes, default=0) >= 0
        and sum(row.num_bytes for row in memory.alive) == memory.peak_bytes
        and all(sum(point.by_kind.values()) == point.num_bytes for point in memory.curve)
        and all(num_bytes >= 0 for point in memory.curve for num_bytes in point.by_kind.values())
        and all(0 <= span.first <= span.last < len(memory.curve) for span in memory.spans)
    )
