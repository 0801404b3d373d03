"""The job that this process is a rank of, from the environment that launchers set."""

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

PATIENCE_S = 30.0
TICK_S = 0.2
PER_RANK_S = 0.001
FOLDER, PATIENCE = "GRADINSPECT_RANKS_FOLDER", "GRADINSPECT_RANKS_PATIENCE"
_SAME_FOR_ALL = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")


class Job(NamedTuple):
    """One rank of a job of several."""

    rank: int
    num_ranks: int
    near: tuple[int, ...]  # the ranks of this host, this one included
    key: str  # the same for all ranks of the job
    folder: str | None = None  # that all hosts share
    patience_s: float = PATIENCE_S  # for a rank that does not move

    @property
    def is_leader(self) -> bool:
        """Whether this rank reports."""
        return self.rank == 0

    @property
    def tick_s(self) -> float:
        """How often it shows what it does, and looks at the others: less often in a large job, whose files add up."""
        return max(TICK_S, PER_RANK_S * self.num_ranks)

    @property
    def others(self) -> tuple[int, ...]:
        """All ranks but this one."""
        return tuple(rank for rank in range(self.num_ranks) if rank != self.rank)


def job_of(environment: Mapping[str, str]) -> Job | None:
    """Read which rank of which job a process is; None without a job, or with only one rank."""
    rank, num_ranks = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    if rank is None or num_ranks is None or not 0 <= rank < num_ranks or num_ranks < 2:
        return None
    import hashlib  # noqa: PLC0415  # only in a job of several ranks

    patience = environment.get(PATIENCE, "")
    key = "\n".join((*(environment.get(name, "") for name in _SAME_FOR_ALL), _place(environment)))
    return Job(
        rank=rank,
        num_ranks=num_ranks,
        near=_near(environment, rank, num_ranks),
        key=hashlib.sha256(key.encode(errors="replace")).hexdigest()[:16],
        folder=environment.get(FOLDER) or None,
        patience_s=float(patience) if patience.isdecimal() and int(patience) else PATIENCE_S,
    )


def _place(environment: Mapping[str, str]) -> str:
    """Return the working directory where the launcher says nothing that tells two jobs apart."""
    if environment.get("TORCHELASTIC_RUN_ID") or environment.get("MASTER_PORT"):
        return ""
    try:
        return os.getcwd()  # noqa: PTH109  # as text
    except OSError:  # it was removed
        return ""


def _near(environment: Mapping[str, str], rank: int, num_ranks: int) -> tuple[int, ...]:
    """List the ranks of this host, which launchers number one after the other."""
    local, num_local = _number(environment, "LOCAL_RANK"), _number(environment, "LOCAL_WORLD_SIZE")
    if local is None or num_local is None or not 0 <= local <= rank:
        return tuple(range(num_ranks))
    return tuple(range(rank - local, min(rank - local + max(num_local, local + 1), num_ranks)))


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "").strip()
    return int(text) if text.isdecimal() else None


@cache
def this_job() -> Job | None:
    """Return the job of this process as it was when we started, before the program could change its environment."""
    return job_of(os.environ)
