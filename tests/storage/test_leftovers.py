"""What a killed run leaves behind is removed by the next, and never what a live one still writes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradinspect.storage import leftovers
from gradinspect.storage.files import write_file
from gradinspect.storage.leftovers import remove_leftovers, remove_old_folders, temporary_file

WRITES = """
import sys, time
from pathlib import Path
from gradinspect.storage.leftovers import temporary_file
with temporary_file(Path(sys.argv[1])) as (path, descriptor):
    print(path.name, flush=True)
    time.sleep(600)
"""
LONG_AGO = time.time() - 2 * leftovers.OLD_S


def writing(folder: Path) -> "subprocess.Popen[str]":
    """Start a process that is in the middle of writing a file."""
    process = subprocess.Popen([sys.executable, "-c", WRITES, folder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert leftovers.NAME.fullmatch(process.stdout.readline().strip())
    return process


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_the_file_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """And that of a run that still lives stays until it is killed as well."""
    processes = [writing(tmp_path), writing(tmp_path)]
    for process, num_left in zip(processes, (1, 0), strict=True):
        process.kill()
        process.communicate()
        write_file(tmp_path / "run.json", b"new", force=True)

        assert len(list(tmp_path.glob(".gradinspect-*.tmp"))) == num_left


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    """Other names, folders, links and pipes are left alone, whoever made them."""
    names = [".gradinspect-0123456789abcdef.tmp2", ".gradinspect-x.tmp", ".gradinspect-0123456789ABCDEF.tmp"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / ".gradinspect-0000000000000000.tmp").mkdir()
    (tmp_path / ".gradinspect-0000000000000001.tmp").symlink_to(tmp_path / names[0])
    os.mkfifo(tmp_path / ".gradinspect-0000000000000002.tmp")
    before = sorted(tmp_path.iterdir())
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "missing")

    assert before == sorted(tmp_path.iterdir())


def test_where_nothing_can_be_locked_age_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no such locks, and some file systems have none: what is of today stays."""
    monkeypatch.setattr(leftovers, "fcntl", None)
    old, new = tmp_path / ".gradinspect-0000000000000000.tmp", tmp_path / ".gradinspect-0000000000000001.tmp"
    old.touch()
    new.touch()
    os.utime(old, (LONG_AGO, LONG_AGO))
    remove_leftovers(tmp_path)
    write_file(tmp_path / "run.json", b"new", force=False)

    assert sorted(tmp_path.iterdir()) == [new, tmp_path / "run.json"]


def test_a_file_that_is_taken_for_a_leftover_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that cleans up in the moment before the lock takes the file, and the writer makes another."""
    taken: list[int] = []

    class _Locks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor: int, _flags: int) -> None:
            if not taken:
                taken.append(descriptor)
                next(tmp_path.glob(".gradinspect-*.tmp")).unlink()

    monkeypatch.setattr(leftovers, "fcntl", _Locks)
    with temporary_file(tmp_path) as (path, descriptor):
        os.close(descriptor)

        assert path.exists()
    assert taken
    assert list(tmp_path.iterdir()) == []


def test_folders_of_pages_are_removed_on_another_day(tmp_path: Path) -> None:
    """Only old ones, only with pages in them, and never what a link leads to."""
    for name, file in (("p-old", "a.html"), ("p-new", "a.html"), ("p-other", "a.txt"), ("q-old", "a.html")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    (tmp_path / "p-link").symlink_to(tmp_path / "q-old")
    for name in ("p-old", "p-other", "q-old"):
        os.utime(tmp_path / name, (LONG_AGO, LONG_AGO))
    remove_old_folders(tmp_path, "p-", ".html")
    remove_old_folders(tmp_path / "missing", "p-", ".html")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["p-link", "p-new", "p-other", "q-old"]
    assert (tmp_path / "q-old" / "a.html").exists()
