"""The folder in which the ranks of a job meet."""

import errno
import os
import re
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from gradinspect.ranks.job import Job
from gradinspect.ranks.meeting import HOST, Meeting, base_folder, started_at
from gradinspect.ranks.records import State


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Rank 0 of two."""
    return Job(rank=0, num_ranks=2, near=(0, 1), key="k", folder=str(tmp_path))


def mine() -> State:
    """The state of this process."""
    return State(pid=os.getpid(), host=HOST, started=started_at(os.getpid()))


def test_what_one_rank_leaves_the_other_reads_until_both_have_left(job: Job) -> None:
    """The last one removes the folder."""
    leader, other = Meeting(job), Meeting(job._replace(rank=1))

    assert not other.connect()
    assert leader.connect()
    assert other.connect()
    leader.put("state.0", mine())
    other.put("state.1", mine())
    assert (other.read("state.0", State), leader.read("state.1", State)) == (mine(), mine())
    assert leader.read("state.2", State) is None
    leader.leave()
    assert other.read("state.1", State) == mine()
    other.leave()
    assert list(base_folder(job).iterdir()) == []
    assert not other.connect()


def test_a_rank_does_not_follow_a_rank_0_that_has_ended(job: Job) -> None:
    """As after a kill; the next run removes what it left."""
    base = base_folder(job)
    gone = replace(mine(), pid=2**22 + 1)
    (base / "k-old").mkdir()
    (base / "k-old" / "state.0").write_bytes(b'{"pid":4194305,"host":"%s","started":""}' % HOST.encode())
    (base / "k.json").write_text(f'{{"folder":"k-old","pid":{gone.pid},"host":"{HOST}","started":"1"}}')

    assert not Meeting(job._replace(rank=1)).connect()
    assert Meeting(job).connect()
    assert not (base / "k-old").exists()
    assert Meeting(job._replace(rank=1)).connect()


def test_a_folder_that_others_can_read_is_not_used(job: Job) -> None:
    """Somebody else may have made it."""
    base_folder(job).chmod(0o755)

    assert not Meeting(job).connect()


@pytest.mark.parametrize("planted", ["a link", "a dangling link", "a file", "a folder for all", "a pipe"])
def test_what_others_have_put_in_the_place_is_not_used(planted: str, job: Job) -> None:
    """Neither is it followed, written to or waited for; one sentence says where another place is named."""
    base = base_folder(job)
    base.rmdir()
    elsewhere = base.with_name("elsewhere")
    match planted:
        case "a link":
            elsewhere.mkdir(mode=0o700)
            base.symlink_to(elsewhere)
        case "a dangling link":
            base.symlink_to(elsewhere)
        case "a file":
            base.touch(mode=0o600)
        case "a folder for all":
            base.mkdir()
            base.chmod(0o777)
        case "a pipe":
            os.mkfifo(base, 0o600)
    for rank in (0, 1):
        meeting = Meeting(job._replace(rank=rank))

        assert not meeting.connect()
        assert re.fullmatch(
            rf"The ranks cannot meet in '{job.folder}': .*\. Name a folder: GRADINSPECT_RANKS_FOLDER=FOLDER\.",
            meeting.problem,
        )
    assert not elsewhere.exists() or not list(elsewhere.iterdir())


def test_a_full_disk_is_said(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind, and what is there already is written again in its place."""
    write = Path.write_bytes
    leader = Meeting(job)
    leader.connect()
    leader.put("state.0", b"old")

    def refuse(path: Path, content: bytes) -> int:
        if path.name.startswith("."):
            path.touch()
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", refuse)
    leader.put("state.0", b"new")
    leader.put("state.1", b"more")
    again = Meeting(job._replace(key="other"))

    assert not again.connect()
    assert again.problem.startswith(f"The ranks cannot meet in '{job.folder}': No space left on device.")
    assert (leader.get("state.0"), leader.get("state.1")) == (b"new", None)
    assert leader.problem == again.problem
    assert leader.get("lost.0") == b""  # by which the others know
    assert not [path for path in base_folder(job).rglob("*") if path.name.startswith((".", "other"))]


def test_a_rank_that_comes_before_rank_0_finds_the_disk_full(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 will not be able to leave a word, and a program would wait for it."""
    early = Meeting(job._replace(rank=1))
    assert (early.connect(), early.problem, list(base_folder(job).iterdir())) == (False, "", [])

    def refuse(path: Path, _content: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    late = Meeting(job._replace(rank=1))
    late.connect()

    assert late.problem.startswith(f"The ranks cannot meet in '{job.folder}': No space left on device.")
    assert not list(base_folder(job).iterdir())


def test_a_full_folder_for_temporary_files_is_the_one_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank may find room for a file where another finds none: they would meet in two places."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/elsewhere")

    assert base_folder(Job(0, 2, (0, 1), "k")).parent == tmp_path


@pytest.mark.skipif(os.name != "posix", reason="Other systems have no usual folder for temporary files.")
def test_the_current_folder_is_none_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tempfile` takes it where all others are full, and what the ranks wrote was left there."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert base_folder(Job(0, 2, (0, 1), "k")).parent != tmp_path
    assert not list(tmp_path.iterdir())


def test_names_that_are_not_unicode_are_left_for_others(job: Job) -> None:
    """As a folder may have."""
    leader = Meeting(job)
    leader.connect()
    leader.put("state.0", replace(mine(), line="train\udc80.py:1"))
    found = leader.read("state.0", State)

    assert found is not None
    assert found.line == "train\\udc80.py:1"


def test_a_pointer_of_a_job_that_crashed_is_not_followed(job: Job) -> None:
    """Its process has ended, or its number belongs to another one now; a new job of the same port meets elsewhere."""
    base = base_folder(job)
    (base / "k-old").mkdir()
    for pid, started in ((os.getpid(), "1"), (2**22 + 1, "")):
        (base / "k.json").write_text(f'{{"folder":"k-old","pid":{pid},"host":"{HOST}","started":"{started}"}}')

        assert not Meeting(job._replace(rank=1)).connect()
    (base / "k.json").write_bytes(b"\xff{")
    assert not Meeting(job._replace(rank=1)).connect()
    leader, other = Meeting(job), Meeting(job._replace(rank=1))

    assert leader.connect()
    assert other.connect()
    leader.put("x", b"here")
    assert other.get("x") == b"here"
