"""What verbs that run a program several times check before they do."""

import pytest

from gradinspect.cli.options.whole_steps import check_runs_alone
from gradinspect.errors import GradInspectError
from gradinspect.ranks.job import this_job


@pytest.mark.parametrize(("num_ranks", "is_refused"), [("1", False), ("2", True)])
def test_ranks_that_meet_only_once(num_ranks: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rank meets itself each time, so that it may run again."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", num_ranks)
    this_job.cache_clear()
    try:
        if not is_refused:
            check_runs_alone("--compiled")
            return
        with pytest.raises(GradInspectError) as failed:
            check_runs_alone("--compiled")
    finally:
        this_job.cache_clear()

    assert str(failed.value) == (
        "'--compiled' runs the program several times, and the 2 ranks of this job can meet only once. Start one rank: "
        "torchrun --nproc-per-node 1."
    )
