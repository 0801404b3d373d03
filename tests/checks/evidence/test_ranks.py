"""What ranks exchange, with the store of one process."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from gradinspect.checks.evidence import ranks
from gradinspect.checks.evidence.ranks import (
    Ranks,
    missing_notes,
    ranks_of_this_run,
    ranks_that_average,
    summary_of_rank,
)
from gradinspect.checks.facts.ranks import RankSummary
from gradinspect.recording.capture import Moment, walk_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder

pytestmark = pytest.mark.skipif(not distributed.is_available(), reason="torch was built without it")


def summary(rank: int) -> RankSummary:
    """Make what a rank does."""
    return RankSummary(rank=rank, unused=(f"w{rank}",), nodes=())


def test_summaries_are_exchanged_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the ranks; one that does not come in time, or that is no summary, is not waited for again."""
    monkeypatch.setattr(ranks, "PATIENCE", timedelta(milliseconds=20))
    store = distributed.HashStore()
    first, second = Ranks(0, 3, store), Ranks(1, 3, store)
    second.exchange("backward #1", summary(1), [1])
    store.set("backward #1/2", "nonsense")
    found = first.exchange("backward #1", summary(0), [2, 1, 0])
    store.set("backward #2/2", "nonsense")

    assert found == [summary(0), summary(1)]
    assert (first.missing, second.missing) == ((2,), ())
    assert first.exchange("backward #2", summary(0), [0, 1, 2]) == [summary(0)]
    assert first.missing == (2, 1)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WORLD_SIZE": "2"},
        {"WORLD_SIZE": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"},
        {"WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "False"},
    ],
)
def test_only_several_ranks_of_torchrun_are_connected(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have no store in which they could meet."""
    for name in ("WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert ranks_of_this_run() is None


def test_a_rank_of_torchrun_meets_the_others_in_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this attempt: after a restart, the summaries of the one before are not read."""
    store = distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    for name, value in {
        "WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True", "MASTER_ADDR": "localhost", "RANK": "1",
        "MASTER_PORT": str(store.port), "TORCHELASTIC_RESTART_COUNT": "3",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    own = ranks_of_this_run()

    assert own is not None
    assert (own.rank, own.num_ranks, own.missing) == (1, 2, ())
    assert own.exchange("backward #1", summary(1), [1]) == [summary(1)]
    assert store.check(["gradinspect/3/backward #1/1"])


@pytest.fixture
def group() -> Iterator[None]:
    """Be the only rank of a group."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


class Two(nn.Module):
    """Reads one of its two layers, and one of them is frozen."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.body, self.extra, self.frozen = (nn.Linear(2, 2, bias=False) for _ in range(3))
        self.frozen.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Leave out the second."""
        return self.frozen(self.body(x))


def summarized(**options: Any) -> tuple[RankSummary, frozenset[int]]:
    """Summarize a step of a model that is averaged, and list with which ranks."""
    ignores = options.pop("ignores", ())
    model = Two()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, list(ignores))
    parallel = DistributedDataParallel(model, **options)
    with Recorder() as recorder:
        loss = parallel(torch.ones(1, 2)).sum()
    walked = walk_graph(outputs_in(loss), Moment(source="test"), recorder)
    found = summary_of_rank(0, walked, recorder)
    walked.walk.close()
    return found, ranks_that_average(recorder, 4)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "unused", "may_differ"),
    [
        ({}, ("extra.weight",), False),
        ({"ignores": ["extra.weight"]}, (), False),
        ({"find_unused_parameters": True}, (), True),
        ({"static_graph": True}, (), False),
    ],
)
def test_parameters_that_are_waited_for(options: dict[str, Any], unused: tuple[str, ...], *, may_differ: bool) -> None:
    """Those that backward does not reach, unless the model is told so."""
    found, partners = summarized(**options)

    assert (found.rank, found.unused, found.may_differ) == (0, unused, may_differ)
    assert [node.name for node in found.nodes][-1] == "SumBackward0"
    assert partners == {0}


@pytest.mark.usefixtures("group")
def test_a_model_that_is_not_averaged_has_no_partners() -> None:
    """Nor has one whose gradients are not averaged in this step."""
    model = Two()
    parallel = DistributedDataParallel(Two())
    with Recorder() as recorder:
        alone = model(torch.ones(1, 2)).sum()
        with parallel.no_sync():
            waiting = parallel(torch.ones(1, 2)).sum()
            partners = ranks_that_average(recorder, 4)
            found = [summary_of_rank(0, walk_graph(outputs_in(one), Moment(source="test")), recorder)
                     for one in (alone, waiting)]  # fmt: skip

    assert partners == frozenset()
    assert [one.unused for one in found] == [(), ()]


def test_a_store_that_is_not_there_connects_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a torch without ranks."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise RuntimeError

    for name, value in {
        "WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True", "MASTER_ADDR": "localhost", "RANK": "1",
        "MASTER_PORT": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "TCPStore", refuse)
    assert ranks_of_this_run() is None
    monkeypatch.setattr(distributed, "TCPStore", lambda *_args, **_options: distributed.HashStore())
    assert ranks_of_this_run() is not None
    monkeypatch.setattr(distributed, "is_available", lambda: False)
    assert ranks_of_this_run() is None


def test_sharded_models_average_with_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are stages of a pipeline."""
    monkeypatch.setattr(ranks, "is_fully_sharded", lambda module: isinstance(module, nn.ReLU))
    act = nn.ReLU()
    with Recorder() as recorder:
        act(torch.ones(2))
    assert ranks_that_average(recorder, 3) == {0, 1, 2}
    monkeypatch.setitem(sys.modules, "torch.distributed.pipelining", distributed)
    assert ranks_that_average(recorder, 3) == frozenset()


def test_ranks_that_do_not_arrive_are_noted() -> None:
    """In one sentence, and only where there are some."""
    assert missing_notes(()) == ()
    assert missing_notes((1, 3)) == (
        "Ranks 1 and 3 did not reach the same backward call in time, so they were not compared.",
    )
