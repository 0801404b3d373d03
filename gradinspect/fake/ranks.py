"""Run a program as one rank of a job whose other ranks are not there.

NOTE [Ranks that are not there]
Each process group of the program is torch's fake one, which sends nothing: what a rank would receive has the right
shape, and values nobody reads. So one process, on fake tensors, does what that rank would do: the same code, with the
same arithmetic on the rank and the number of ranks. The environment is that of torchrun, with hosts of eight ranks, or
one host where the ranks cannot be divided so.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gradinspect.request import FakeJob
from gradinspect.torch_api.distributed.fake_ranks import (
    AnsweredCollectives,
    end_fake_ranks,
    fake_rank_patches,
    require_fake_ranks,
)
from gradinspect.torch_api.patching.patches import patched

PER_HOST = 8


@contextmanager
def fake_ranks(job: FakeJob) -> Iterator[None]:
    """Answer the program's process groups and its look at the environment. Use it inside the fake mode.

    Raises:
        GradInspectError: This torch has no fake process group.
    """
    require_fake_ranks()
    with ExitStack() as stack:
        stack.enter_context(_environment(launched(job)))
        answering = AnsweredCollectives()
        stack.enter_context(patched(*fake_rank_patches(job.rank, job.world_size, answering)))
        stack.callback(end_fake_ranks)
        stack.enter_context(answering)
        yield


def launched(job: FakeJob) -> dict[str, str]:
    """Return the environment that torchrun gives to a rank. NOTE [Ranks that are not there]."""
    per_host = PER_HOST if job.world_size % PER_HOST == 0 else job.world_size
    return {
        "RANK": str(job.rank),
        "WORLD_SIZE": str(job.world_size),
        "LOCAL_RANK": str(job.rank % per_host),
        "LOCAL_WORLD_SIZE": str(per_host),
        "GROUP_RANK": str(job.rank // per_host),
        "GROUP_WORLD_SIZE": str(job.world_size // per_host),
        "ROLE_RANK": str(job.rank),
        "ROLE_WORLD_SIZE": str(job.world_size),
        "ROLE_NAME": "default",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
