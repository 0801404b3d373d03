"""What the ranks of a job send each other of their results, and what rank 0 says about how they differ."""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from gradinspect.analyses.memory.held import measure_memory
from gradinspect.checks.findings import Finding, Findings
from gradinspect.graph import Graph
from gradinspect.ranks.troubles import named
from gradinspect.storage import decode_graph, encode_graph
from gradinspect.units import format_bytes, format_count

if TYPE_CHECKING:
    from gradinspect.analyses.gradients.buckets import BucketReport
    from gradinspect.analyses.memory.growth import Growth
    from gradinspect.analyses.memory.step import StepMemory

# ruff: noqa: PLC0415  # what --help need not wait for
GRAPH = "graph"  # the fact by which graphs are compared before any of them is read
_DEVICE_NUMBER = re.compile(rb'"([a-z]+):\d+"')  # each rank has a device of its own
MAX_SUMMARIES = 8


class RankResult(NamedTuple):
    """What a rank reports of its result."""

    moment: str = ""  # "backward #1", "end"
    facts: tuple[tuple[str, str], ...] = ()  # what is the same on all ranks, if they do the same
    content: bytes = b""  # what rank 0 reads if a fact differs, or always


class ReceivedResult(NamedTuple):
    """What rank 0 knows of the result of a rank."""

    result: RankResult
    rank: int


def no_result(_result: object) -> RankResult:
    """Send only that there is a result."""
    return RankResult()


def result_of_graph(graph: Graph) -> RankResult:
    """Send what was recorded, without values, which differ from rank to rank."""
    content = encode_graph(replace(graph, gradients=None, values=()), compressed=False)
    content = _DEVICE_NUMBER.sub(rb'"\1"', content)
    held = measure_memory(graph).extra_bytes
    facts = ((GRAPH, hashlib.sha256(content).hexdigest()), ("held for backward", format_bytes(held)))
    point = graph.captured_at
    moment = f"{point.kind} #{point.number}" if point.number is not None else point.kind
    return RankResult(moment, facts, _compressed(content))


def result_of_graph_in(result: Any) -> RankResult:  # noqa: ANN401  # any result that has a graph
    """Send what was recorded."""
    return result_of_graph(result.graph)


def result_of_growth(growth: "Growth") -> RankResult:
    """Send what was alive in the end."""
    last = growth.iterations[-1] if growth.iterations else None
    grows = "grows" if growth.grows else "does not grow"
    nodes = "none" if last is None else format_count(last.live_nodes, "node")
    return RankResult("", (("live graph", grows), ("alive at the last call", nodes)))


def result_of_buckets(report: "BucketReport") -> RankResult:
    """Send whose gradient completes each bucket."""
    from gradinspect.analyses.gradients.buckets import bucket_rows

    facts = tuple(
        (f"last gradient of bucket {row.number} of {model.model}", row.last or "none")
        for model in report.models
        for row in bucket_rows(report.graph, model)
    )
    return RankResult("", facts)


def result_of_step_memory(memory: "StepMemory") -> RankResult:
    """Send the peak."""
    return RankResult("", (("peak", format_bytes(memory.peak_bytes)),))


def result_of_findings(found: Findings) -> RankResult:
    """Send what was found."""
    return RankResult("", (), msgspec.json.encode(found))


def with_findings_of(found: Findings, others: Mapping[int, bytes]) -> Findings:
    """Add what only other ranks have found to what rank 0 has."""
    known = {_identity(one) for one in found.findings}
    more: dict[object, tuple[Finding, list[int]]] = {}
    files, notes = {file.path: file for file in found.files}, dict.fromkeys(found.notes)
    for rank, content in others.items():
        theirs = msgspec.json.decode(content, type=Findings)
        for finding in theirs.findings:
            if _identity(finding) not in known:
                more.setdefault(_identity(finding), (finding, []))[1].append(rank)
        files |= {file.path: file for file in theirs.files if file.path not in files}
        notes |= {f"{named([rank]).capitalize()}: {note}": None for note in theirs.notes if note not in notes}
    added = [replace(one, text=f"{one.text} Found on {named(ranks)} only.") for one, ranks in more.values()]
    return replace(
        found,
        num_ranks=max(found.num_ranks, len(others) + 1),
        findings=(*found.findings, *added),
        files=tuple(files.values()),
        notes=tuple(notes),
    )


def _identity(finding: Finding) -> object:
    return finding.code, [(place.file, place.line, place.role) for place in finding.places].__repr__()


def differences(received: Sequence[ReceivedResult]) -> Iterator[str]:
    """Say what differs between ranks: facts with their values, and how graphs differ."""
    names = dict.fromkeys(name for one in received for name, _ in one.result.facts)
    for name in names:
        values: dict[str, list[int]] = {}
        for one in received:
            values.setdefault(dict(one.result.facts).get(name, "none"), []).append(one.rank)
        if name == GRAPH:
            yield from _graph_differences(received, len(values))
        elif len(values) > 1:
            yield f"{name}: {'; '.join(f'{value} on {named(ranks)}' for value, ranks in values.items())}"


def _graph_differences(received: Sequence[ReceivedResult], num_kinds: int) -> Iterator[str]:
    """Say which ranks have equal graphs, and what the others lack; equal content is read once."""
    if num_kinds == 1:
        yield f"{named([one.rank for one in received])} have the same graph"
        return
    from gradinspect.analyses.diff.groups import Grouper
    from gradinspect.renderers.diff_words import modules_of_group, summary

    grouper, kinds = Grouper(), dict[str, bytes]()
    for one in received:
        kind = dict(one.result.facts)[GRAPH]
        if kind in kinds:
            grouper.add_equal(kinds[kind])
        else:
            kinds[kind] = grouper.add(decode_graph(one.result.content, f"the capture of rank {one.rank}"))
    groups = grouper.groups()
    ranks = [[received[member].rank for member in group.members] for group in groups]
    yield f"{named(ranks[0])} {'have the same graph' if len(ranks[0]) > 1 else 'has a graph of its own'}"
    for group, members in list(zip(groups, ranks, strict=True))[1 : MAX_SUMMARIES + 1]:
        if group.diff is None:
            continue
        is_one = len(members) == 1
        verb, modules = "differs" if is_one else "differ", modules_of_group(group.diff, is_one=is_one)
        yield f"{named(members)} {verb} from {named(ranks[0][:1])}: {summary(group.diff)}{modules}"
    if len(groups) > MAX_SUMMARIES + 1:
        yield f"{len(groups) - MAX_SUMMARIES - 1:,} more kinds of graphs are not listed"


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0)
