"""Which rank of which job a process is."""

from pathlib import Path

import pytest

from gradinspect.errors import GradInspectError
from gradinspect.ranks.job import PATIENCE_S, check_environment, job_of

PAIR = {"RANK": "1", "WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    "environment",
    [{}, {"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "2", "WORLD_SIZE": "2"},
     {"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "-1", "WORLD_SIZE": "2"}, {"RANK": "0", "WORLD_SIZE": ""}],
)  # fmt: skip
def test_without_two_ranks_there_is_no_job(environment: dict[str, str]) -> None:
    """Nor with numbers that make no sense."""
    assert job_of(environment) is None


@pytest.mark.parametrize(
    ("rank", "num_ranks", "wrong"),
    [("x", "2", "'RANK=x'"), ("7", "2", "'RANK=7 WORLD_SIZE=2'"), ("0", "-3", "'WORLD_SIZE=-3'"),
     ("²", "2", "'RANK=²'"), ("0", "0", "'RANK=0 WORLD_SIZE=0'")],
)  # fmt: skip
def test_two_variables_that_make_no_job_are_said(rank: str, num_ranks: str, wrong: str) -> None:
    """One of them alone, or empty, may mean something else to a program."""
    with pytest.raises(GradInspectError) as caught:
        check_environment({"RANK": rank, "WORLD_SIZE": num_ranks})

    assert caught.value.message == f"{wrong} is no rank of a job."
    for other in ({"RANK": rank}, {"WORLD_SIZE": num_ranks}, {"RANK": rank, "WORLD_SIZE": ""}):
        check_environment(other)


@pytest.mark.parametrize(
    ("more", "near"),
    [({}, (0, 1, 2, 3, 4, 5, 6, 7)), ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, (4, 5, 6, 7)),
     ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, (5,)),
     ({"LOCAL_RANK": "9", "LOCAL_WORLD_SIZE": "4"}, tuple(range(8)))],
)  # fmt: skip
def test_ranks_of_one_host_follow_each_other(more: dict[str, str], near: tuple[int, ...]) -> None:
    """As launchers number them; without a word of the launcher, all are near."""
    job = job_of({"RANK": "5", "WORLD_SIZE": "8", **more})

    assert job is not None
    assert (job.near, job.is_leader, job.others) == (near, False, (0, 1, 2, 3, 4, 6, 7))


def test_a_job_is_known_by_what_its_ranks_share() -> None:
    """Ranks of one job have one key, another port or attempt is another job."""
    keys = [
        job_of({**PAIR, **more}).key  # type: ignore[union-attr]
        for more in ({}, {"RANK": "0"}, {"MASTER_PORT": "1"}, {"TORCHELASTIC_RESTART_COUNT": "1"})
    ]

    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("text", "patience"), [("120", 120.0), ("0", PATIENCE_S), ("soon", PATIENCE_S), ("", PATIENCE_S)]
)
def test_the_patience_is_a_number_of_seconds(text: str, patience: float) -> None:
    """Any other text leaves the default."""
    job = job_of({**PAIR, "GRADINSPECT_RANKS_PATIENCE": text})

    assert job is not None
    assert job.patience_s == patience


def test_ranks_of_a_large_job_look_less_often() -> None:
    """So that the files of all together are at most a thousand per second."""
    jobs = [job_of({"RANK": "0", "WORLD_SIZE": str(count)}) for count in (2, 256, 10_000)]

    assert [round(count / job.tick_s) for job, count in zip(jobs, (2, 256, 10_000), strict=True) if job] == [
        10,
        1000,
        1000,
    ]


def test_where_nothing_tells_two_jobs_apart_their_folders_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two that start at the same time with a file as their meeting point must not meet each other."""
    keys = []
    for more in ({}, {"MASTER_PORT": "1"}):
        for folder in (tmp_path, tmp_path.parent):
            monkeypatch.chdir(folder)
            keys.append(job_of({**PAIR, **more}).key)  # type: ignore[union-attr]

    assert keys[0] != keys[1]
    assert keys[2] == keys[3]
