"""What is undone where something else has happened to a file meanwhile."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from gradinspect.kept_files import keeper, undo
from gradinspect.kept_files.journal import Journal

NOBODY = 2**22 + 5  # more than any process of Linux has as its number


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, Path]:
    """Return a file that was put aside, with something new in its place, and the journal."""
    (tmp_path / "journals").mkdir()
    file, journal = tmp_path / "best.pt", tmp_path / "journals" / f"{NOBODY}-ab{undo.SUFFIX}"
    file.write_text("the original")
    keeper.Keeper(Journal(str(journal))).opened(str(file), os.O_WRONLY | os.O_TRUNC)
    file.write_text("made up")
    return file, journal


def test_the_original_takes_the_place_of_what_the_program_has_written(kept: tuple[Path, Path]) -> None:
    """As it has not left its place."""
    file, journal = kept

    assert undo.undo(str(journal)) == []
    assert file.read_text() == "the original"


def test_what_another_program_has_put_there_is_left(kept: tuple[Path, Path]) -> None:
    """A training that goes on beside it has saved better weights; the original is named."""
    file, journal = kept
    other = file.with_name("other.tmp")
    other.write_text("better weights")
    other.replace(file)
    (said,) = undo.undo(str(journal))

    assert file.read_text() == "better weights"
    assert said.startswith(f'"{file}" was replaced by another program meanwhile, and is left: what was there before')
    assert Path(said.split('"')[3]).read_text() == "the original"


def test_journals_of_commands_that_are_gone_are_undone(kept: tuple[Path, Path]) -> None:
    """Unless a process waits to do it."""
    file, journal = kept
    with journal.with_name(journal.name + undo.WAITS).open("w") as waits:
        fcntl.flock(waits, fcntl.LOCK_EX)
        assert undo.recover(str(journal.parent)) == []
        assert file.read_text() == "made up"
    assert undo.recover(str(journal.parent)) == []
    assert file.read_text() == "the original"
    assert list(journal.parent.iterdir()) == []


def test_what_cannot_be_moved_far_is_put_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mounted folder may be of the same device, and nothing can be renamed out of it."""
    folder, journal = tmp_path / "mounted", tmp_path / f"1-ab{undo.SUFFIX}"
    folder.mkdir()
    (folder / "log.txt").write_text("the original")

    def rename(source: str, target: str) -> None:
        if Path(target).parent.parent != folder:
            raise OSError(18, "Invalid cross-device link")
        Path(source).rename(target)

    monkeypatch.setattr(keeper, "rename", rename)
    keeper.Keeper(Journal(str(journal))).removed(str(folder / "log.txt"))
    (folder / "log.txt").unlink()

    assert [json.loads(line)[0] for line in journal.read_text().splitlines()] == ["begun", "kept", "kept", "new"]
    assert undo.undo(str(journal)) == []
    assert (folder / "log.txt").read_text() == "the original"
