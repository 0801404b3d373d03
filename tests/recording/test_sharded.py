"""Models that ranks share: what is recorded on each, in real processes, beside what pack hooks see."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from runs import python

PROGRAM = Path(__file__).parent.parent / "sharded_programs.py"
Ranks: TypeAlias = list[dict[str, Any]]
KINDS = ["plain", "DistributedDataParallel", "fully_shard", "tensor parallel"]


@pytest.fixture(scope="module")
def ranks() -> Ranks:
    """Return what each rank has recorded of each kind of model."""
    done = python(PROGRAM, has_ours=True)

    assert done.returncode == 0, done.stderr

    found: Ranks = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_keep_their_names(kind: str, ranks: Ranks) -> None:
    """Each leaf has the name that the parameter has in the user's model, on every rank."""
    for rank in ranks:
        assert sorted(rank[kind]["leaves"]) == sorted(rank[kind]["names"])
        assert {"up", "down"} <= set(rank[kind]["modules"])
        assert rank[kind]["warnings"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_those_on_this_rank(kind: str, ranks: Ranks) -> None:
    """As many as the storages have that pack hooks see, without the parameters."""
    for rank in ranks:
        assert rank[kind]["held"] == rank[kind]["packed"] > 0

    assert ranks[0]["tensor parallel"]["held"] < ranks[0]["plain"]["held"]


def test_shapes_are_global_with_the_local_beside(ranks: Ranks) -> None:
    """Of parameters, of saved values and of the outputs that are saved; `num_bytes` is local."""
    for rank in ranks:
        found = rank["tensor parallel"]

        assert {name: local for name, (_, local) in found["leaves"].items()} == found["shard"]
        assert found["leaves"]["up.weight"] == [[16, 7], [8, 7]]
        assert [[6, 16], [6, 8], 192] in found["saved"]
        assert ["TanhBackward0", [6, 16], [6, 8]] in found["outputs"]


def test_no_local_shape_where_nothing_is_sharded(ranks: Ranks) -> None:
    """Also under fully_shard, whose leaves are whole while a module runs."""
    for kind in KINDS[:3]:
        assert ranks[1][kind]["saved"] == ranks[1][kind]["outputs"] == []
