"""The folder in which the ranks of a job meet."""

import os
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
