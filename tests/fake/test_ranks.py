"""Ranks that are not there: what is put in place for a program, and put back."""

import os
from dataclasses import replace

import pytest
import torch
from torch import distributed

from gradinspect.errors import GradInspectError
from gradinspect.fake.ranks import fake_ranks, launched
from gradinspect.request import FakeJob
from gradinspect.torch_api.distributed import fake_ranks as api
from gradinspect.torch_api.patching.patches import patched_names
from gradinspect.torch_api.probes import MISSING


def test_the_environment_and_torch_are_as_before() -> None:
    """Also if the program has left its process group behind, and changed the environment."""
    before = dict(os.environ)
    with fake_ranks(FakeJob(rank=3, world_size=4)):
        distributed.init_process_group("nccl")
        os.environ["RANK"] = "7"

        assert (distributed.get_rank(), distributed.get_world_size()) == (3, 4)

    assert dict(os.environ) == before
    assert not distributed.is_initialized()
    assert patched_names() == ()
    assert torch.ones(1).item() == 1


def test_hosts_have_eight_ranks_if_they_can_be_divided_so() -> None:
    """As torchrun numbers them: rank 11 of 16 is the fourth of the second host; twelve share one host."""
    of_two_hosts = launched(FakeJob(rank=11, world_size=16))
    of_one = launched(FakeJob(rank=11, world_size=12))

    assert (of_two_hosts["LOCAL_RANK"], of_two_hosts["GROUP_RANK"], of_two_hosts["LOCAL_WORLD_SIZE"]) == ("3", "1", "8")
    assert (of_one["LOCAL_RANK"], of_one["GROUP_RANK"], of_one["LOCAL_WORLD_SIZE"]) == ("11", "0", "12")


def test_without_a_fake_process_group_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that has none names what is missing."""
    store = api._fake_store()
    monkeypatch.setattr(api, "_fake_store", lambda: replace(store, value=MISSING))

    with pytest.raises(GradInspectError, match=r"has no '.*fake_pg.FakeStore', which --world-size needs"):
        fake_ranks(FakeJob(rank=0, world_size=2)).__enter__()

    assert "LOCAL_WORLD_SIZE" not in os.environ
