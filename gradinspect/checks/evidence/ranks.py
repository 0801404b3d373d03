"""What each rank under torchrun is about to do, exchanged with all others before the engine starts.

NOTE [How ranks communicate]
Not through the program's process group, because our collectives would put its own out of order. torchrun has a store
that every worker can reach (TORCHELASTIC_USE_AGENT_STORE), where each rank waits for the others up to a time limit.
Every rank compares, so all reach the same result; only rank 0 prints.
Source: torch/distributed/rendezvous.py, `_create_c10d_store`, torch 2.13.
"""

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import torch
from torch import nn

from gradinspect.checks.facts.ranks import RankSummary, ranks_in_words, summarize_rank
from gradinspect.ranks.job import job_of
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.walk import Walk
from gradinspect.torch_api.distributed.sharding import is_fully_sharded
from gradinspect.units import parse_whole

PATIENCE = timedelta(seconds=30)


class Ranks:
    """This rank, and a store for exchanging data with the others."""

    def __init__(self, rank: int, num_ranks: int, store: Any) -> None:
        """Set up.

        Args:
            rank: The number of this rank.
            num_ranks: The number of ranks.
            store: The shared key-value store.
        """
        self.rank = rank
        self.num_ranks = num_ranks
        self._store = store
        self.missing: tuple[int, ...] = ()  # ranks that timed out; no longer waited for

    def exchange(self, call: str, summary: RankSummary, partners: Collection[int]) -> list[RankSummary]:
        """Exchange the summaries of one call with some ranks, without those that time out."""
        self._store.set(f"{call}/{self.rank}", msgspec.json.encode(summary))
        found = []
        for rank in sorted(partners):
            if rank in self.missing:
                continue
            key = f"{call}/{rank}"
            try:
                self._store.wait([key], PATIENCE)
                found.append(msgspec.json.decode(self._store.get(key), type=RankSummary))
            except (RuntimeError, msgspec.DecodeError):
                self.missing = (*self.missing, rank)
        return found


def ranks_of_this_run() -> Ranks | None:
    """Connect to the store of torchrun; None without torchrun, or with only one process."""
    environment = os.environ
    job, port = job_of(environment), parse_whole(environment.get("MASTER_PORT", ""))
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or job is None or port is None:
        return None
    if not torch.distributed.is_available():
        return None
    address = environment.get("MASTER_ADDR", "")
    try:
        store = torch.distributed.TCPStore(address, port, is_master=False, timeout=PATIENCE)
    except RuntimeError:
        return None
    attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return Ranks(job.rank, job.num_ranks, torch.distributed.PrefixStore(f"gradinspect/{attempt}", store))


def ranks_that_average(recorder: Recorder, num_ranks: int) -> frozenset[int]:
    """Return the ranks that average gradients with this one: only they must compute the same.

    Stages of a pipeline do not; waiting for the one before would keep it from its own backward.
    """
    modules = recorder.called_modules()
    groups = [module.process_group for module in _synchronized(modules)]
    if any(map(is_fully_sharded, modules)) and "torch.distributed.pipelining" not in sys.modules:
        return frozenset(range(num_ranks))
    return frozenset(rank for group in groups for rank in torch.distributed.get_process_group_ranks(group))


def _synchronized(modules: Iterable[nn.Module]) -> list[nn.parallel.DistributedDataParallel]:
    return [
        module
        for module in modules
        if isinstance(module, nn.parallel.DistributedDataParallel) and module.require_backward_grad_sync
    ]


def summary_of_rank(rank: int, walked: WalkedGraph, recorder: Recorder) -> RankSummary:
    """Summarize what this rank is about to do."""
    parallel = _synchronized(recorder.called_modules())
    strict = [module for module in parallel if not (module.find_unused_parameters or module.static_graph)]
    may_differ = any(module.find_unused_parameters for module in parallel)
    unused = _unused_parameters(walked.walk, strict) if strict else []
    return summarize_rank(walked.graph, rank, unused, may_differ=may_differ)


def _unused_parameters(walk: Walk, modules: Sequence[nn.Module]) -> list[str]:
    """List the parameters that DistributedDataParallel waits for but this backward does not reach."""
    reached = set(map(id, walk.leaves().values()))
    return [
        name
        for module in modules
        for name, parameter in module.module.named_parameters()
        if parameter.requires_grad and id(parameter) not in reached and name not in module.parameters_to_ignore
    ]


def missing_notes(ranks: Sequence[int]) -> tuple[str, ...]:
    """Say which ranks did not reach a backward call that others reached."""
    if not ranks:
        return ()
    words = ranks_in_words(ranks).capitalize()
    return (f"{words} did not reach the same backward call in time, so they were not compared.",)
