"""What is said of a rank that died, failed, hangs or never came, from records alone."""

import os

import pytest

from gradinspect.ranks.job import Job
from gradinspect.ranks.meeting import HOST, started_at
from gradinspect.ranks.peers import Peer
from gradinspect.ranks.records import Outcome, State
from gradinspect.ranks.troubles import absence_of, end_of, hang_of, named, standstill, trouble_while_running

ME = os.getpid()
JOB = Job(rank=0, num_ranks=4, near=(0, 1), key="k")


def state(line: str = "", *, calls: int = 0, pid: int = ME, host: str = HOST) -> State:
    """What a rank does; its process is this one, which is running."""
    return State(pid=pid, host=host, started=started_at(pid), line=line, inside="barrier" if line else "", calls=calls)


def peer(now: float, state: State | None, outcome: Outcome | None = None, rank: int = 1) -> Peer:
    """What was read of a rank at second 0, and again now."""
    found = Peer(rank, 0.0)
    found.update(state, outcome, 0.0)
    found.update(state, outcome, now)
    return found


def test_a_rank_that_goes_on_or_has_ended_well_is_in_no_trouble() -> None:
    """Whatever its exit code says of findings."""
    assert end_of(peer(1, state("a.py:1"))) is None
    assert end_of(peer(1, state("a.py:1"), Outcome(exit_code=1))) is None
    assert hang_of(peer(29, state("a.py:1")), 29, 30) is None
    assert hang_of(peer(99, state("a.py:1"), Outcome()), 99, 30) is None


@pytest.mark.parametrize(
    ("known", "outcome", "said"),
    [
        (state("a.py:7", calls=2), Outcome(exit_code=3, sentence="The script failed."),
         "Rank 1: The script failed. It was last at a.py:7, in barrier(), after 2 backward calls."),
        (state(), Outcome(exit_code=2, sentence="No.", has_nothing=True),
         "Rank 1 called no backward before its program ended."),
        (state("a.py:7", pid=2**22 + 1), None,
         "Rank 1 died (killed?): it was last at a.py:7, in barrier(), before any backward call."),
        (state("a.py:7", host="elsewhere"), None,
         "Rank 1 died (killed?): it was last at a.py:7, in barrier(), before any backward call."),
    ],
)  # fmt: skip
def test_how_a_rank_ended_is_said(known: State, outcome: Outcome | None, said: str) -> None:
    """Failed, without a backward, killed, or silent on another host for too long."""
    trouble = end_of(peer(60, known, outcome))

    assert trouble is not None
    assert trouble.sentence == said


def test_a_rank_that_could_not_write_is_not_said_to_hang_or_to_be_absent() -> None:
    """Its record is old, or never came; what it has written after all counts."""
    for known, outcome in ((None, None), (state("a.py:7"), None), (state("a.py:7"), Outcome())):
        found = peer(60, known, outcome)
        found.is_lost = True
        trouble = end_of(found)

        assert found.has_ended
        assert (trouble is None) == (outcome is not None)
        assert trouble is None or trouble.sentence == (
            "Rank 1 could not write in the folder where the ranks meet. Make room there, or name another one: "
            "GRADINSPECT_RANKS_FOLDER=FOLDER."
        )


def test_a_rank_that_hangs_is_named_if_another_is_further() -> None:
    """Not while rank 0 itself moves, nor before it has not moved for long enough."""
    late, mine = peer(40, state("a.py:7")), state("a.py:9", calls=1)

    assert trouble_while_running(mine, 1, [late], 40, 30, 0) is None
    assert trouble_while_running(state("a.py:9"), 40, [late], 40, 30, 0) is None
    trouble = trouble_while_running(mine, 40, [late], 40, 30, 0)
    assert trouble is not None
    assert trouble.sentence == "Rank 1 hangs: for 40 s it has been at a.py:7, in barrier(), before any backward call."


def test_rank_0_is_named_if_all_others_have_ended() -> None:
    """It waits for nobody who could come."""
    trouble = trouble_while_running(state("a.py:9"), 31, [peer(31, state(), Outcome())], 31, 30, 0)

    assert trouble is not None
    assert trouble.sentence.startswith("Rank 0 hangs: for 31 s it has been at a.py:9, in barrier()")


def test_a_rank_that_failed_is_named_when_rank_0_had_time_to_record() -> None:
    """Five seconds; one that was killed is named at once, as the launcher ends rank 0 next."""
    failed = peer(1, state(), Outcome(exit_code=3, sentence="It failed."))

    assert trouble_while_running(state(), 0, [failed], 1, 30, 1) is None
    assert trouble_while_running(state(), 0, [failed], 6, 30, 5) is not None
    assert trouble_while_running(state(), 0, [peer(1, state(pid=2**22 + 1))], 1, 30, 0) is not None


def test_a_rank_that_never_came_is_named() -> None:
    """One of this host after the patience, with an error; one of another host soon, with what to do."""
    near, far = Peer(1, 0.0), Peer(3, 0.0)

    assert absence_of(near, JOB, 29) is None
    assert "Start every rank with the same command." in str(absence_of(near, JOB, 30))
    trouble = absence_of(far, JOB, 6)
    assert trouble is not None
    assert trouble.exit_code == 0
    assert trouble.sentence.endswith("Name a folder that all hosts share: GRADINSPECT_RANKS_FOLDER=/shared/folder.")


def test_a_standstill_of_all_ranks_is_told_by_line() -> None:
    """If they are in different lines, which no rank leaves."""
    others = [peer(60, state("a.py:7"), rank=rank) for rank in (1, 2)]

    assert standstill(state("a.py:7"), 60, others, 60, 30) == ""
    assert standstill(state("a.py:9"), 59, others, 60, 30) == ""
    assert standstill(state("a.py:9"), 60, others, 60, 30) == (
        "No rank has moved for 60 s: rank 0 is at a.py:9, in barrier(), before any backward call; ranks 1-2 are at "
        "a.py:7, in barrier(), before any backward call."
    )
    assert named([3]) == "rank 3"
