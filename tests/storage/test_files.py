"""A file is there complete or not at all, and never replaced unasked."""

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from factories import product_plus_two

from gradinspect.errors import GradInspectError
from gradinspect.storage import encode_graph, read_graph, write_file


@pytest.fixture
def umask() -> Iterator[None]:
    """Set a umask that no default has."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def test_a_written_capture_is_read_back(tmp_path: Path) -> None:
    """The bytes tell whether a capture file is compressed, whatever its name says."""
    record = product_plus_two()
    for name, compressed in (("run.json", False), ("run.json.gz", True), ("no_suffix", True)):
        write_file(tmp_path / name, encode_graph(record, compressed=compressed), force=False)

        assert record == read_graph(tmp_path / name) == read_graph(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["no_suffix", "run.json", "run.json.gz"]


def test_no_overwriting_without_force(tmp_path: Path) -> None:
    """A file that is there stays until the user says --force."""
    path = tmp_path / "a.json"
    write_file(path, b"old", force=False)
    with pytest.raises(GradInspectError, match=r'a.json" exists. Overwrite it'):
        write_file(path, b"new", force=False)

    assert path.read_bytes() == b"old"
    write_file(path, b"new", force=True)

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems may let a program that runs be written to")
def test_a_program_that_runs_is_not_replaced(tmp_path: Path) -> None:
    """Not even with --force, as by `-o /proc/self/exe`, which leads to the Python of all environments."""
    program = shutil.which("sleep")
    assert program is not None
    path = Path(shutil.copy(program, tmp_path / "sleep"))
    with subprocess.Popen([path, "60"]) as process:
        try:
            with pytest.raises(GradInspectError, match=r'Could not write ".*exe": text file busy'):
                write_file(Path(f"/proc/{process.pid}/exe"), b"new", force=True)
        finally:
            process.kill()

    assert path.read_bytes() == Path(program).read_bytes()


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another process takes the name while we write, its file is kept."""
    path = tmp_path / "a.json"
    link = os.link

    def take_the_name_first(source: Path, target: Path) -> None:
        path.write_bytes(b"theirs")
        link(source, target)

    monkeypatch.setattr(os, "link", take_the_name_first)
    with pytest.raises(GradInspectError, match="exists"):
        write_file(path, b"ours", force=False)

    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hard links are not to be had, writing works all the same and still replaces nothing."""

    def refuse(source: Path, target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.json"
    write_file(path, b"new", force=False)

    assert path.read_bytes() == b"new"
    with pytest.raises(GradInspectError, match="exists"):
        write_file(path, b"newer", force=False)


@pytest.mark.usefixtures("umask")
def test_a_new_file_respects_the_umask(tmp_path: Path) -> None:
    """A new file is as open as any other the user makes."""
    write_file(tmp_path / "a.json", b"", force=False)

    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    """A private file stays private when it is replaced."""
    path = tmp_path / "a.json"
    path.touch(mode=0o600)
    write_file(path, b"new", force=True)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Writing through a link replaces what it points to; a link to nothing makes its target."""
    link, target = tmp_path / "latest.json", tmp_path / "run1.json"
    link.symlink_to(target.name)
    write_file(link, b"first", force=False)
    write_file(link, b"second", force=True)

    assert link.is_symlink()
    assert target.read_bytes() == b"second"


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt at the worst moment leaves the old file and no half of the new one."""
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def interrupt(temporary: Path, target: Path) -> None:
        assert temporary.read_bytes() == b"new"
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, b"new", force=True)

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_is_written_directly(name: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Bytes for standard output come after what was printed before, and need no force."""
    sys.stdout.write("before\n")
    write_file(Path(name), b"\x00bytes", force=False)

    assert capfdbinary.readouterr().out == b"before\n\x00bytes"


def test_devices_are_written_directly() -> None:
    """A device takes the bytes and stays a device; a full one gives one sentence."""
    write_file(Path(os.devnull), b"bytes", force=False)

    assert Path(os.devnull).is_char_device()
    if Path("/dev/full").exists():
        with pytest.raises(GradInspectError, match='"/dev/full": no space left on device'):
            write_file(Path("/dev/full"), b"bytes", force=False)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills up while writing, the old file stays and the part written goes."""
    open_file = os.open

    def open_on_full_disk(path: Path, flags: int, mode: int) -> int:
        os.close(open_file(path, flags, mode))
        return open_file("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(os, "open", open_on_full_disk)
    with pytest.raises(GradInspectError, match="no space left on device"):
        write_file(tmp_path / "a.json", b"bytes", force=False)

    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """A folder, a missing folder and a file in place of a folder get one sentence each."""
    (tmp_path / "file").touch()
    for path, expected in (
        (tmp_path, "it is a directory"),
        (tmp_path / "out" / "a.json", f'the directory does not exist: "{tmp_path / "out"}"'),
        (tmp_path / "file" / "a.json", "not a directory"),
        (tmp_path / ("x" * 300), "file name too long"),
    ):
        with pytest.raises(GradInspectError) as caught:
            write_file(path, b"", force=True)

        assert caught.value.message == f'Could not write "{path}": {expected}.'


def test_a_folder_that_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, as /proc is, and the system says that something is not."""

    def deny(*_: object) -> int:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(GradInspectError, match=r'Could not write ".*a.json": its directory takes no files.'):
        write_file(tmp_path / "a.json", b"", force=False)


def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that takes no files is named with the system's reason."""

    def deny(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(GradInspectError, match=r'Could not write ".*a.json": permission denied.'):
        write_file(tmp_path / "a.json", b"", force=False)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder get one sentence each."""
    for path, expected in ((tmp_path / "no.json", "the file does not exist"), (tmp_path, "it is a directory")):
        with pytest.raises(GradInspectError) as caught:
            read_graph(path)

        assert caught.value.message == f'Could not read "{path}": {expected}.'


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """A named pipe, as a shell makes for `<(zcat run.json.gz)`, is read like a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(encode_graph(product_plus_two(), compressed=True),))
    writer.start()
    record = read_graph(path)
    writer.join()

    assert record == product_plus_two()
