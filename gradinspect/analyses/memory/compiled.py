"""What each compiled node keeps beside what eager would keep, and what its backward computes again."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gradinspect.analyses.memory.saved_rows import KeptByEager
from gradinspect.analyses.memory.saved_storages import IN_MEMORY_ANYWAY, origins_of_saved, storages_of
from gradinspect.graph import Graph, Record
from gradinspect.units import format_bytes, format_count, format_flops

CLOSED = "What is inside "  # begins what a record says of compiled nodes whose operators it has not


def closed_notes(graph: Graph) -> tuple[str, ...]:
    """Return what a record says of compiled nodes that it cannot look into."""
    return tuple(warning for warning in graph.warnings if warning.startswith(CLOSED))


class CompiledKept(Record, frozen=True):
    """One compiled node whose inside is known, with its operators."""

    node: int
    operators: int
    too_bytes: int = 0  # of storages that eager keeps too, without parameters and buffers
    only_bytes: int = 0  # that only compiled code keeps
    unknown_bytes: int = 0
    recomputed: int = 0  # operators that the forward has run too
    recomputed_flops: int = 0  # of those for which torch has a formula
    is_stripped: bool = False  # torch's cache has the names of its operators alone, so none is known to be recomputed

    @property
    def num_bytes(self) -> int:
        """What it keeps."""
        return self.too_bytes + self.only_bytes + self.unknown_bytes


def compiled_kept(graph: Graph) -> tuple[CompiledKept, ...]:
    """Look at each compiled node that is followed by what is inside; a storage counts for the first that keeps it."""
    origins = origins_of_saved(graph)
    counted: set[int] = set()
    found = []
    for first, end in _boxes(graph):
        verdicts: dict[int, set[bool | None]] = {}
        for node in graph.nodes[first:end]:
            for value in node.saved:
                for storage in storages_of(value):
                    if origins[storage] not in IN_MEMORY_ANYWAY and storage not in counted:
                        verdicts.setdefault(storage, set()).add(value.kept_by_eager)
        counted.update(verdicts)
        sizes = {True: 0, False: 0, None: 0}
        for storage, said in verdicts.items():
            sizes[True if True in said else None if None in said else False] += graph.storages[storage].num_bytes
        again = [node for node in graph.nodes[first:end] if node.is_recomputed]
        found.append(
            CompiledKept(
                node=first,
                operators=end - first - 1,
                too_bytes=sizes[True],
                only_bytes=sizes[False],
                unknown_bytes=sizes[None],
                recomputed=len(again),
                recomputed_flops=sum(node.backward_flops or 0 for node in again),
                is_stripped=not any(any(node.forward_outputs) for node in graph.nodes[first + 1 : end]),
            )
        )
    return tuple(found)


def _boxes(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield the place of each compiled node, and that behind the last of its operators, which follow it."""
    starts = [place for place, node in enumerate(graph.nodes) if node.kind == "compiled" and node.function is not None]
    for start in starts:
        end = start + 1
        while end < len(graph.nodes) and graph.nodes[end].kind == "compiled" and graph.nodes[end].function is None:
            end += 1
        if end > start + 1:
            yield start, end


def eager_words(kept: KeptByEager | None) -> str:
    """Say whether eager keeps a tensor of compiled code; "" of other tensors."""
    if kept is None:
        return ""
    return {"yes": "eager keeps it too", "no": "eager does not keep it"}.get(kept, "not known if eager keeps it")


def kept_sentences(found: Sequence[CompiledKept]) -> Iterator[tuple[str, Sequence[CompiledKept]]]:
    """Say what compiled nodes keep, and what they compute again; nodes that do the same share a sentence."""
    groups: dict[CompiledKept, list[CompiledKept]] = {}
    for one in found:
        groups.setdefault(replace(one, node=-1, operators=0), []).append(one)
    for group in groups.values():
        yield _sentence(group[0], len(group) - 1), group


def _sentence(one: CompiledKept, num_others: int) -> str:
    others = f" and {format_count(num_others, 'other')} each keep" if num_others else " keeps"
    if one.is_stripped:
        kept = format_bytes(one.num_bytes) if one.num_bytes else "nothing"
        return f"#{one.node}{others} {kept}; whether eager does too and what is computed again is not known"
    sizes = (
        (one.too_bytes, "that eager keeps too"),
        (one.only_bytes, "that eager does not keep"),
        (one.unknown_bytes, "that eager may keep, too"),
    )
    kept = ", ".join(f"{format_bytes(size)} {what}" for size, what in sizes if size) or "nothing"
    flops = f" ({format_flops(one.recomputed_flops)} FLOPs)" if one.recomputed_flops else ""
    again = f"{format_count(one.recomputed, 'operator')} again{flops}" if one.recomputed else "nothing again"
    return f"#{one.node}{others} {kept}; {'compute' if num_others else 'computes'} {again}"
