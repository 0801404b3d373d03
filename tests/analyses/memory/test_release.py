"""How held memory falls while backward runs."""

import pytest
from factories import graph, leaf, op, saved
from hypothesis import assume, given
from strategies import graphs

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.analyses.memory.release import ReleaseMoment, nodes_to_run, release_curve
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Storage


def test_a_storage_goes_with_the_last_node_that_keeps_it() -> None:
    """What two nodes keep is freed at the second; parameters are no part of it."""
    shared = saved("_saved_self", 4, storage=0)
    drawn = graph(
        op("MulBackward0", 1, saved=(shared, saved("_saved_other", 2, storage=1))),
        op("ExpBackward0", 2, saved=(shared,)),
        op("MmBackward0", 3, saved=(saved("_saved_mat2", 9, storage=2, origin="parameter"),)),
        leaf("w", 9, storage=2),
        storages=(Storage(num_bytes=16), Storage(num_bytes=8), Storage(num_bytes=36, origin="parameter")),
    )

    assert release_curve(drawn, measure_memory(drawn)) == (
        ReleaseMoment(node=0, freed_bytes=8, held_bytes=16),
        ReleaseMoment(node=1, freed_bytes=16, held_bytes=0),
    )


def test_many_moments_are_joined() -> None:
    """No more than asked for, each named after its largest, and nothing is lost."""
    nodes = [op("ExpBackward0", place + 1, saved=(saved("_saved_self", 1, storage=place),)) for place in range(1000)]
    storages = tuple(Storage(num_bytes=100 if place == 17 else 4) for place in range(1000))
    long = graph(*nodes, leaf("w", 3), storages=storages)
    moments = release_curve(long, measure_memory(long), max_moments=50)

    assert len(moments) == 50
    assert moments[0] == ReleaseMoment(node=17, freed_bytes=176, held_bytes=4096 - 176)
    assert moments[-1].held_bytes == 0


@pytest.mark.slow
@given(graphs())
def test_all_is_freed_in_the_end(drawn: Graph) -> None:
    """The curve falls from all that is held to nothing, by what is freed."""
    try:
        memory = measure_memory(drawn)
    except GradInspectError:
        assume(False)
    moments = release_curve(drawn, memory)
    left = memory.extra_bytes
    for moment in moments:
        left -= moment.freed_bytes

        assert moment.held_bytes == left
    assert left == 0


@pytest.mark.slow
@given(graphs())
def test_what_is_held_when_backward_reaches_a_node_agrees_with_the_curve(drawn: Graph) -> None:
    """Each moment of the curve is what the nodes after it keep; at node 0 nothing is freed yet."""
    try:
        whole = measure_memory(drawn)
    except GradInspectError:
        assume(condition=False)
    assert measure_memory(drawn, nodes_to_run(drawn, 0, None)).extra_bytes == whole.extra_bytes
    for moment in release_curve(drawn, whole):
        if moment.node + 1 < len(drawn.nodes):
            left = measure_memory(drawn, nodes_to_run(drawn, moment.node + 1, None))
            assert left.extra_bytes == moment.held_bytes


def test_a_node_that_is_not_there_is_said() -> None:
    """With the last one that is."""
    with pytest.raises(GradInspectError, match=r"'--at-node 9': there is no such node\. The last one is #0\."):
        nodes_to_run(graph(leaf("w", 3)), 9, None)
