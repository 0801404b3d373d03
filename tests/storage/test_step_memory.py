"""The memory of whole steps as a file: written, read back, refused where it is damaged."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from step_record import step_record, two_devices

from gradinspect.errors import GradInspectError
from gradinspect.storage.step_memory import encode_step_memory, read_step_memory


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_record_is_read_back(suffix: str, tmp_path: Path) -> None:
    """All of it, and equal records give equal bytes."""
    file = tmp_path / f"step{suffix}"
    content = encode_step_memory(step_record(), compressed=suffix == ".json.gz")
    file.write_bytes(content)

    assert read_step_memory(file) == step_record()
    assert encode_step_memory(step_record(), compressed=suffix == ".json.gz") == content
    assert content.startswith(b"\x1f\x8b") == (suffix == ".json.gz")


def test_names_cannot_control_a_terminal(tmp_path: Path) -> None:
    """Hidden characters are escapes in the file; what UTF-8 cannot express is written out."""
    content = encode_step_memory(step_record("a\x1b]52\u202e.py", "\udcff\x7f"), compressed=False)
    (tmp_path / "step.json").write_bytes(content)

    assert content.isascii()
    assert not any(byte in content for byte in b"\x1b\x7f")
    assert read_step_memory(tmp_path / "step.json").source == "a\x1b]52\u202e.py"


def test_each_device_is_read_back_and_must_add_up(tmp_path: Path) -> None:
    """A file of an earlier release has none, and is read as before."""
    file = tmp_path / "step.json"
    document: Any = json.loads(encode_step_memory(two_devices(), compressed=False))
    file.write_text(json.dumps(document))

    assert read_step_memory(file) == two_devices()

    document["memory"]["others"][1]["peak_bytes"] += 1
    file.write_text(json.dumps(document))
    with pytest.raises(GradInspectError, match="contradict"):
        read_step_memory(file)

    del document["memory"]["others"], document["memory"]["on"]
    file.write_text(json.dumps(document))

    assert (read_step_memory(file).on, read_step_memory(file).others) == ("", ())


def changed(path: tuple[str | int, ...], value: object) -> bytes:
    """Write a record with one value replaced."""
    document: Any = json.loads(encode_step_memory(step_record(), compressed=False))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty|not a capture file|no record"),
        (b'{"format":"gradinspect","version":1,"graph":{}}', "has no record of the memory of a whole step"),
        (changed(("version",), 99), "has version 99, newer than 1"),
        (changed(("memory", "peak_bytes"), 1), "its numbers contradict each other"),
        (changed(("memory", "alive", 0, "num_bytes"), -4096), "its numbers contradict each other"),
        (changed(("memory", "spans", 0, "last"), 4), "its numbers contradict each other"),
        (changed(("memory", "curve", 1, "num_bytes"), 5), "its numbers contradict each other"),
        (changed(("memory", "at", "phase"), "sideways"), r"is not valid: Invalid enum value 'sideways'"),
        (changed(("memory", "added_later"), 1), "unknown field `added_later`"),
        (gzip.compress(encode_step_memory(step_record(), compressed=False))[:-20], "truncated|damaged"),
    ],
)
def test_another_file_is_refused_in_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    """With what it lacks."""
    (tmp_path / "step.json").write_bytes(content)
    with pytest.raises(GradInspectError, match=sentence):
        read_step_memory(tmp_path / "step.json")
