"""Options to be one rank of a job whose other ranks are not there."""

from typing import Final

from gradinspect.errors import GradInspectError
from gradinspect.ranks.job import this_job
from gradinspect.request import FakeJob

WORLD_SIZE_HELP: Final = "Be one of N ranks, without the others, on fake tensors."
RANK_HELP: Final = "With --world-size: which one. [default: 0]"


def fake_job(world_size: int | None, rank: int | None) -> FakeJob | None:
    """Read which rank of how many is asked for; None: the process is what it is.

    Raises:
        GradInspectError: There is no such rank, or this process is a rank of a real job.
    """
    if world_size is None:
        if rank is not None:
            raise GradInspectError(f"'--rank {rank}' needs --world-size.", "Give the number of ranks: --world-size 8.")
        return None
    if rank is not None and rank >= world_size:
        raise GradInspectError(f"'--rank {rank}' is not a rank of {world_size}.", f"They are 0 to {world_size - 1}.")
    job = this_job()
    if job is not None:
        raise GradInspectError(
            f"'--world-size {world_size}' is for ranks that are not there, and this is one of {job.num_ranks} that "
            "are.",
            "Remove this option, or run without a launcher.",
        )
    return FakeJob(rank=rank or 0, world_size=world_size)
