"""Lines of files, whatever a program has put in the place of what reads them."""

import linecache
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


@pytest.mark.parametrize("name", ["os.stat", "linecache.getlines", "linecache.getline", "linecache.checkcache"])
def test_what_the_program_replaced_is_not_called_or_may_fail(name: str, tmp_path: Path) -> None:
    """Lines are then empty at worst."""
    file = tmp_path / "lines.py"
    file.write_text("x = 1\n")
    linecache.clearcache()
    with mock.patch(name, refuse):
        found = line_of(str(file), 1)

    assert found in ({"x = 1"} if name.startswith("linecache") else {""})


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
