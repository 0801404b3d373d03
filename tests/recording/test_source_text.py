"""Lines of files, whatever a program has put in the place of what reads them."""

import linecache
import os
from pathlib import Path
from typing import NoReturn
from unittest import mock

import pytest

from gradinspect.recording.frames import short_file_name, this_folder
from gradinspect.recording.source_text import line_of, lines_of


def refuse(*_arguments: object) -> NoReturn:
    """Be what a test of the program puts in the place of a function."""
    raise AssertionError("not expected here")


def test_lines_are_read(tmp_path: Path) -> None:
    """Without the spaces around one; there is none before the first and after the last."""
    file = tmp_path / "lines.py"
    file.write_text("def f():\n    return 1\n")

    assert lines_of(str(file)) == ["def f():\n", "    return 1\n"]
    assert [line_of(str(file), line) for line in (0, 1, 2, 3)] == ["", "def f():", "return 1", ""]
    assert lines_of(str(tmp_path / "no such file")) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_would_be_waited_for_has_no_lines(tmp_path: Path) -> None:
    """A program may have replaced its own file by a pipe to which nobody writes, by a folder, or by a device."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zeros.py").symlink_to("/dev/zero")
    (tmp_path / "folder.py").mkdir()

    assert [lines_of(str(tmp_path / f"{name}.py")) for name in ("pipe", "zeros", "folder")] == [[], [], []]


REPLACED = (
    *(f"linecache.{name}" for name in ("getlines", "getline", "checkcache", "updatecache")),
    *("os.stat", "builtins.open", "io.open", "tokenize.open", "os.path.isabs"),
)


@pytest.mark.parametrize("name", REPLACED)
def test_what_the_program_replaced_is_not_called(name: str, tmp_path: Path) -> None:
    """And lines are the same."""
    file = tmp_path / "lines.py"
    file.write_text("x = 1")
    linecache.clearcache()
    with mock.patch(name, side_effect=AssertionError) as replaced:
        found = line_of(str(file), 1)
    by_us = lines_of(str(file))
    linecache.clearcache()

    assert found == "x = 1"
    assert replaced.call_count == 0
    assert by_us == linecache.getlines(str(file))


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a\r\nb", b"# coding: latin-1\n\xe9\n", b"\xff\n", b"\x00\n", b"\xef\xbb\xbfx\n"]
)
def test_lines_are_those_of_tracebacks(text: bytes, tmp_path: Path) -> None:
    """Of an empty file, and in any encoding."""
    file = tmp_path / "lines.py"
    file.write_bytes(text)
    linecache.clearcache()
    ours, seen = lines_of(str(file)), dict(linecache.cache)
    linecache.clearcache()

    assert ours == linecache.getlines(str(file))
    assert seen == linecache.cache


def test_a_source_that_only_a_loader_has_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `linecache` must look, what stands there may be called; then there are no lines."""
    monkeypatch.setattr("os.stat", refuse)

    assert lines_of("no such file.py") == []
    assert lines_of("nul\0l.py") == []


def test_files_have_names_where_nothing_tells_the_folder() -> None:
    """The last two parts of a path are enough."""
    with mock.patch("os.getcwd", refuse):
        assert short_file_name("a/b/train.py", Path("/c")) == "b/train.py"
    assert this_folder() == Path.cwd()


def test_a_folder_that_was_deleted_is_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program that works in a temporary folder to the end."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert this_folder() == Path("/")
