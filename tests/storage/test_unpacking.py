"""Reading never takes much more memory than a real capture of that size needs."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradinspect.errors import GradInspectError
from gradinspect.storage.unpacking import read_content

READ = """
import resource, sys
from gradinspect.storage import read_graph
from gradinspect.errors import GradInspectError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_graph(sys.argv[1])
except GradInspectError as error:
    print(error.message)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


class _Endless(io.RawIOBase):
    """Says how much of it was read."""

    def __init__(self, start: bytes, then: bytes) -> None:
        self.start, self.then, self.taken = start, then, 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = (self.start[self.taken : self.taken + size] + self.then * size)[:size]
        self.taken += size
        return chunk


def test_what_is_packed_comes_out() -> None:
    """Several streams in one file too, as gzip allows, and a file that cannot seek."""
    packed = gzip.compress(b'{"a":') + gzip.compress(b"1}")

    assert read_content(io.BytesIO(packed), "x") == b'{"a":1}'
    assert read_content(io.BytesIO(b' {"a":1}'), "x") == b' {"a":1}'


def test_what_is_no_json_is_not_read_to_its_end() -> None:
    """Zeros without end, as /dev/zero has them, are given up after the first piece."""
    for endless in (_Endless(b"", b"\0"), _Endless(b"", b" ")):
        with pytest.raises(GradInspectError, match="it is not JSON"):
            read_content(endless, "x")  # type: ignore[arg-type]

        assert endless.taken < 3 * 1024**2


def test_an_endless_file_is_given_up_at_the_limit() -> None:
    """Whatever it begins with."""
    endless = _Endless(b"{", b" ")
    with pytest.raises(GradInspectError, match=r"x holds more than 4.0 MiB"):
        read_content(endless, "x", 4 * 1024**2)  # type: ignore[arg-type]

    assert endless.taken < 7 * 1024**2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
@pytest.mark.parametrize("start", [b"{", b'{"format":"gradinspect","version":1,"graph":{"source":"', b"\0"])
def test_a_bomb_takes_little_memory(tmp_path: Path, start: bytes) -> None:
    """Two megabytes that unpack to two gigabytes are given up in one sentence, within a small part of them."""
    bomb = tmp_path / "bomb.json.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(450):
            file.write(b" " * 2**20)
    run = subprocess.run(
        [sys.executable, "-c", READ, bomb], check=True, text=True, capture_output=True, env={**os.environ}
    )
    message, num_mib = run.stdout.splitlines()

    assert message.endswith(("which no capture does.", "it is not JSON."))
    assert int(num_mib) < 450
    assert run.stderr == ""


def test_the_size_limit_is_the_largest_size() -> None:
    """As many bytes are read, and not one more."""
    content = b"{" + b" " * 98 + b"}"

    assert read_content(io.BytesIO(content), "'a.json'", max_bytes=100) == content
    with pytest.raises(GradInspectError, match="holds more than 99 B"):
        read_content(io.BytesIO(content), "'a.json'", max_bytes=99)
