"""The job that this process is a rank of, from the environment that launchers set."""

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gradinspect.errors import GradInspectError
from gradinspect.units import parse_whole

PATIENCE_S = 30.0
MAX_RANKS = 100_000  # that rank 0 can watch
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
    if rank is None or num_ranks is None or not 0 <= rank < num_ranks or not 2 <= num_ranks <= MAX_RANKS:
        return None
    import hashlib  # noqa: PLC0415  # only in a job of several ranks

    patience = parse_whole(environment.get(PATIENCE, ""))
    key = "\n".join((*(environment.get(name, "") for name in _SAME_FOR_ALL), _place(environment)))
    return Job(
        rank=rank,
        num_ranks=num_ranks,
        near=_near(environment, rank, num_ranks),
        key=hashlib.sha256(key.encode(errors="replace")).hexdigest()[:16],
        folder=environment.get(FOLDER) or None,
        patience_s=float(patience or PATIENCE_S),
    )


def _place(environment: Mapping[str, str]) -> str:
    """Return the working directory if the launcher says nothing that distinguishes two jobs."""
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
    return parse_whole(environment.get(name, "").strip())


def check_environment(environment: Mapping[str, str]) -> None:
    """Check the variables of a job. RANK or WORLD_SIZE alone may mean something else to a program.

    Raises:
        GradInspectError: They contradict each other, there are too many ranks, or one of our own variables is wrong.
    """
    given = {name: environment.get(name, "").strip() for name in ("RANK", "WORLD_SIZE")}
    if all(given.values()):
        _check_ranks(given, *map(parse_whole, given.values()))
    patience = environment.get(PATIENCE)
    if patience and not parse_whole(patience):
        raise GradInspectError(f"'{PATIENCE}={patience}' is not a number of seconds.", f"Write {PATIENCE}=120.")


def _check_ranks(given: Mapping[str, str], rank: int | None, num_ranks: int | None) -> None:
    if given["WORLD_SIZE"].isdecimal() and (num_ranks is None or num_ranks > MAX_RANKS):
        raise GradInspectError(
            f"'WORLD_SIZE={given['WORLD_SIZE']}' is more ranks than the {MAX_RANKS:,} that can be watched.",
            "Unset it, or run fewer ranks under gradinspect.",
        )
    wrong = next((f"{name}={text}" for name, text in given.items() if parse_whole(text) is None), None)
    if wrong is None and not (rank or 0) < (num_ranks or 0):
        wrong = " ".join(f"{name}={text}" for name, text in given.items())
    if wrong is not None:
        raise GradInspectError(f"'{wrong}' is no rank of a job.", "Let torchrun set both, or unset them.")


@cache
def this_job() -> Job | None:
    """Return the job of this process as it was when we started, before the program could change its environment."""
    return job_of(os.environ)
