"""Which late gradient holds up which bucket."""

from factories import graph, leaf, op

from gradinspect.analyses.gradients.buckets import BucketParameter, BucketReport, Buckets, bucket_notes, bucket_rows
from gradinspect.graph import Gradients, Graph, NodeGradients
from gradinspect.renderers.data.gradients import render_buckets_json
from gradinspect.renderers.terminal.gradients.buckets import BucketsPage

NUM_NODES = 20


def run_graph(came_at: dict[str, int]) -> Graph:
    """Build a graph whose backward runs twenty nodes, with the gradient of each leaf at one of them, from 1."""
    names = list(came_at)
    others = NUM_NODES - len(names)
    nodes = [*(op("SinBackward0", place + 1) for place in range(others)), *(leaf(name, 4) for name in names)]
    orders = [*(place for place in range(NUM_NODES) if place + 1 not in came_at.values()),
              *(place - 1 for place in came_at.values())]  # fmt: skip
    ran = tuple(NodeGradients(node=node, order=order, incoming=()) for node, order in enumerate(orders))
    return graph(*nodes, gradients=Gradients(nodes=ran))


def bucketed(found: Graph, *names: tuple[str, ...], **fields: object) -> Buckets:
    """Put leaves into buckets."""
    places = {node.leaf.name: number for number, node in enumerate(found.nodes) if node.leaf is not None}
    buckets = tuple(
        tuple(BucketParameter(name=name, num_bytes=16, node=places.get(name)) for name in bucket) for bucket in names
    )
    values: dict[str, object] = {"model": "model", "is_rebuilt": True, "is_kept": True, "cap_bytes": 1024, **fields}
    return Buckets(buckets=buckets, **values)  # type: ignore[arg-type]


def notes_of(came_at: dict[str, int], *names: tuple[str, ...]) -> list[str]:
    """Return the notes about buckets."""
    found = run_graph(came_at)
    return list(bucket_notes(found, bucket_rows(found, bucketed(found, *names))))


def test_buckets_in_the_order_of_backward() -> None:
    """Nothing holds them up; each is reduced when it is ready."""
    found = run_graph({"a": 4, "b": 6, "c": 18, "d": 20})
    rows = bucket_rows(found, bucketed(found, ("a", "b"), ("c", "d")))

    assert [(row.ready_at, row.reduced_at, row.last, row.num_bytes) for row in rows] == [
        (6, 6, "b", 32),
        (20, 20, "d", 32),
    ]
    assert list(bucket_notes(found, rows)) == []


def test_a_late_gradient_is_named() -> None:
    """With its bucket, and the node at which the others were there; the bucket behind waits for it."""
    assert notes_of({"a": 4, "b": 5, "c": 19, "d": 8}, ("a", "b", "c"), ("d",)) == [
        "c holds up bucket 1: its 2 other gradients came by node 5 of 20, this one by node 19.",
        "bucket 2 is ready at node 8, and waits for bucket 1 until node 19: buckets are reduced in order.",
    ]


def test_several_late_gradients_are_named_together() -> None:
    """A layer's weight and bias come one after the other; both are late."""
    assert notes_of({"a": 4, "b": 5, "c": 19, "d": 20}, ("a", "b", "c", "d")) == [
        "c, d hold up bucket 1: its 2 other gradients came by node 5 of 20, these by node 20."
    ]


def test_a_gradient_that_never_comes() -> None:
    """The bucket is never ready, and neither are those behind it."""
    found = run_graph({"a": 4, "b": 6})
    rows = bucket_rows(found, bucketed(found, ("a", "unused"), ("b",)))

    assert [(row.ready_at, row.reduced_at) for row in rows] == [(None, None), (6, None)]
    assert list(bucket_notes(found, rows)) == ["bucket 1 has no gradient of unused in this call: is it unused?"]


def test_the_report() -> None:
    """A row per bucket, no line too wide, and the same in JSON."""
    found = run_graph({"a": 4, "b": 6, "c": 18})
    models = (
        bucketed(found, ("a", "c"), ("b",), is_rebuilt=False),
        bucketed(found, ("a",), is_rebuilt=False, is_kept=False),
    )
    report = BucketReport(graph=found, models=models, rank=1, num_ranks=4)
    lines = [line.plain for line in BucketsPage().lines(report, None)]

    assert "     1        32 B          2        18        18  c" in lines
    assert any(line.startswith("rank 1 of 4") for line in lines)
    assert max(map(len, lines)) <= 80
    assert '"others_at": 4' in render_buckets_json(report)
    assert sum("with --full" in line.plain or "--full" in line.plain for line in BucketsPage().lines(report, 1)) == 1
