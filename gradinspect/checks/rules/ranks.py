"""What the ranks of a distributed program do in the same backward call, compared: by the names of parameters."""

from collections.abc import Iterator, Sequence

from gradinspect.checks.findings import Finding, Place, line_of, listed, place_of
from gradinspect.graph import Frame, Graph, Record


class RankNode(Record, frozen=True):
    """One kind of node: all those of one class that the same line made in the same module."""

    name: str
    module: str | None
    frame: Frame | None


class RankSummary(Record, frozen=True, kw_only=True):
    """What one rank is about to go backward through."""

    rank: int
    unused: tuple[str, ...]  # parameters that DistributedDataParallel waits for, and backward does not reach
    may_differ: bool = False  # find_unused_parameters says that ranks may do different things
    nodes: tuple[RankNode, ...]  # each kind once, in the order of the forward pass


def summarize_rank(graph: Graph, rank: int, unused: Sequence[str], *, may_differ: bool = False) -> RankSummary:
    """Say what a graph is made of. How often a loop went round is left out: sequences may differ in length."""
    kinds = dict.fromkeys(
        RankNode(
            name=node.name,
            module=None if node.module is None else graph.modules[node.module].path,
            frame=None if node.frame is None else _without_caller(graph.frames[node.frame]),
        )
        for node in reversed(graph.nodes)
        if node.leaf is None
    )
    return RankSummary(rank=rank, unused=tuple(unused), may_differ=may_differ, nodes=tuple(kinds))


def rank_findings(ranks: Sequence[RankSummary], backward: Frame | None) -> Iterator[Finding]:
    """Compare the ranks of one call: parameters that some do not reach, or else graphs that differ."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in dict.fromkeys(name for rank in ranks for name in rank.unused):
        groups.setdefault(tuple(rank.rank for rank in ranks if name in rank.unused), []).append(name)
    for missing, names in groups.items():
        yield _unused(ranks, names, missing, backward)
    if not groups and not any(rank.may_differ for rank in ranks):
        yield from _differing(ranks, backward)


def missing_notes(ranks: Sequence[int]) -> tuple[str, ...]:
    """Say which ranks did not come to a backward call that others came to."""
    if not ranks:
        return ()
    return (f"{_ranks(ranks).capitalize()} did not come to the same backward call in time, and could not be compared.",)


def _without_caller(frame: Frame) -> Frame:
    return Frame(file=frame.file, line=frame.line, function=frame.function, code=frame.code)


def _unused(
    ranks: Sequence[RankSummary], names: Sequence[str], missing: Sequence[int], backward: Frame | None
) -> Finding:
    using = next((rank for rank in ranks if rank.rank not in missing), None)
    lacking = next(rank for rank in ranks if rank.rank in missing)
    where = "any rank" if using is None else f"{_ranks(missing)}, but does on rank {using.rank}"
    places = () if using is None else (*_parting(using, lacking), *_parting(lacking, using))
    line = f" at {places[0].file}:{places[0].line}" if places else ""
    return Finding(
        code="GI901",
        title=f"parameters get no gradient on {'any rank' if using is None else 'some ranks'}",
        text=f"Backward does not reach {listed(names)} on {where}. DistributedDataParallel waits for every parameter "
        "on every rank: this backward would hang, or the next forward fail.",
        places=(*places, *place_of("backward", backward)),
        remedy=f"Run the same layers on every rank{line}, or give DistributedDataParallel find_unused_parameters=True.",
        subjects=tuple(names),
    )


def _differing(ranks: Sequence[RankSummary], backward: Frame | None) -> Iterator[Finding]:
    """Compare each rank with the first one; one difference is enough."""
    for other in ranks[1:]:
        if set(other.nodes) == set(ranks[0].nodes):
            continue
        here, there = _parting(ranks[0], other), _parting(other, ranks[0])
        yield Finding(
            code="GI902",
            title="ranks build different graphs",
            text=f"Of the two, {_only(ranks[0], other) or _only(other, ranks[0])}. Gradients that are averaged over "
            "ranks are then those of different functions, and what is exchanged inside the graph may not fit.",
            places=(*here, *there, *place_of("backward", backward)),
            remedy=f"Take the decision that leads to {_line((*here, *there))} from something that all ranks share.",
        )
        return


def _parting(one: RankSummary, other: RankSummary) -> tuple[Place, ...]:
    """Return the first line of one rank that made a node that another rank does not have."""
    theirs = set(other.nodes)
    frame = next((node.frame for node in one.nodes if node not in theirs and node.frame is not None), None)
    return place_of(f"rank{one.rank}", frame)


def _only(one: RankSummary, other: RankSummary) -> str:
    theirs = set(other.nodes)
    names = list(dict.fromkeys(node.name for node in one.nodes if node not in theirs))
    return f"only rank {one.rank} has this {listed(names)}, and not rank {other.rank}" if names else ""


def _line(places: Sequence[Place]) -> str:
    return f"{places[0].file}:{places[0].line}" if places else line_of(None)


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {listed(list(map(str, numbers)))}"
