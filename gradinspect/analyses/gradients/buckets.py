"""Which late gradient holds up which bucket of DistributedDataParallel.

What comes in: the buckets, and the order in which backward ran the nodes of a graph. What goes out: a row per bucket,
and sentences.

NOTE [Buckets are reduced in order]
The gradients of a bucket are reduced together, once all are there, and no bucket before the one ahead of it. The
communication overlaps with the rest of backward, so a bucket whose gradients came early but for one begins late.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import gradients_of
from gradinspect.graph import Graph, Record
from gradinspect.units import format_count

MAX_NAMES = 3
LATE_SHARE = 0.1  # of the nodes of backward: by how much a gradient comes later than the others of its bucket


class BucketParameter(Record, frozen=True):
    """A parameter in a bucket."""

    name: str
    num_bytes: int
    node: int | None = None  # its AccumulateGrad; None if this graph does not lead to it


class Buckets(Record, frozen=True):
    """The buckets of one model, in the order in which they are reduced."""

    model: str  # what the user calls it
    buckets: tuple[tuple[BucketParameter, ...], ...]
    is_rebuilt: bool  # in the order of gradients, after the first iteration
    is_kept: bool  # for all iterations to come
    cap_bytes: int


class BucketReport(Record, frozen=True):
    """The buckets of all models, and the graph of a backward call that filled them, with its gradients."""

    graph: Graph
    models: tuple[Buckets, ...]
    rank: int = 0
    num_ranks: int = 1


class BucketRow(Record, frozen=True):
    """When a bucket is ready. Nodes are counted in the order in which backward ran them, from 1."""

    number: int
    num_parameters: int
    num_bytes: int
    last: str = ""  # the parameter whose gradient came last; "" if none came
    ready_at: int | None = None  # the node that made it complete; None if a gradient never came
    late: tuple[str, ...] = ()  # the parameters after the longest wait for a gradient; () if it has only one
    others_at: int | None = None  # the node before that wait
    reduced_at: int | None = None  # when the buckets ahead of it are complete too
    missing: tuple[str, ...] = ()  # parameters without a gradient in this call


def num_nodes_run(graph: Graph) -> int:
    """Count the nodes that backward ran."""
    return len(gradients_of(graph).nodes)


def bucket_rows(graph: Graph, buckets: Buckets) -> tuple[BucketRow, ...]:
    """List when each bucket is ready, in the order in which they are reduced."""
    order = {ran.node: ran.order + 1 for ran in gradients_of(graph).nodes}
    rows: list[BucketRow] = []
    begun: int | None = 0
    for number, parameters in enumerate(buckets.buckets, start=1):
        row = _row(number, parameters, order)
        begun = None if begun is None or row.ready_at is None else max(begun, row.ready_at)
        rows.append(replace(row, reduced_at=begun))
    return tuple(rows)


def _row(number: int, parameters: Sequence[BucketParameter], order: Mapping[int, int]) -> BucketRow:
    came = sorted(
        (order[one.node], place, one.name)
        for place, one in enumerate(parameters) if one.node is not None and one.node in order
    )  # fmt: skip
    missing = tuple(one.name for one in parameters if one.node is None or one.node not in order)
    wait = max(range(1, len(came)), key=lambda place: came[place][0] - came[place - 1][0], default=None)
    return BucketRow(
        number=number,
        num_parameters=len(parameters),
        num_bytes=sum(one.num_bytes for one in parameters),
        last=came[-1][2] if came else "",
        ready_at=came[-1][0] if came and not missing else None,
        late=() if wait is None else tuple(name for _, _, name in came[wait:]),
        others_at=None if wait is None else came[wait - 1][0],
        missing=missing,
    )


def bucket_notes(graph: Graph, rows: Sequence[BucketRow]) -> Iterator[str]:
    """Say which gradient holds up which bucket, and which bucket others."""
    total = num_nodes_run(graph)
    for row in rows:
        if row.missing:
            yield f"bucket {row.number} has no gradient of {_listed(row.missing)} in this call: is it unused?"
        elif (
            row.ready_at is not None and row.others_at is not None and row.ready_at - row.others_at > LATE_SHARE * total
        ):
            others = format_count(row.num_parameters - len(row.late), "other gradient")
            verb, these = ("holds", "this one") if len(row.late) == 1 else ("hold", "these")
            yield (
                f"{_listed(row.late)} {verb} up bucket {row.number}: its {others} came by node {row.others_at:,} of "
                f"{total:,}, {these} by node {row.ready_at:,}."
            )
    for row, ahead in _waiting(rows):
        begins = row.reduced_at
        if row.ready_at is not None and begins is not None and begins - row.ready_at > LATE_SHARE * total:
            yield (
                f"bucket {row.number} is ready at node {row.ready_at:,}, and waits for bucket {ahead.number} until "
                f"node {begins:,}: buckets are reduced in order."
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES])}{more}"


def _waiting(rows: Sequence[BucketRow]) -> Iterator[tuple[BucketRow, BucketRow]]:
    """Yield each bucket that is ready before one ahead of it, with the one that it waits for."""
    slowest: BucketRow | None = None
    for row in rows:
        if slowest is not None and (row.ready_at or 0) < (slowest.ready_at or 0):
            yield row, slowest
        elif row.ready_at is not None:
            slowest = row
