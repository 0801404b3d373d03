"""The signs of a tree, and the words that name calls and inputs in it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gradinspect.analyses.structure.outline_rows import Link
from gradinspect.graph import Graph, ModuleCall


class Symbols(NamedTuple):
    """The characters that are not letters."""

    leaf: str = "◆"
    arrow: str = "→"
    back: str = "←"
    opened: str = "▾"
    closed: str = "▸"
    times: str = "×"
    to: str = "–"
    ellipsis: str = "…"
    separator: str = "·"


ASCII_SYMBOLS = Symbols(
    leaf="*", arrow="->", back="<-", opened="v", closed=">", times="x", to="-", ellipsis="...", separator="|"
)


def call_names(graph: Graph, calls: Sequence[ModuleCall], ellipsis: str) -> str:
    """Name one call, or the first and the last of many."""
    between = f" {ellipsis} "
    if len({call.path for call in calls}) == 1 < len(calls):
        first, last = calls[0], calls[-1]
        return call_name(graph, msgspec.structs.replace(first, call=1)) + f" calls {first.call}{between}{last.call}"
    return between.join(call_name(graph, call) for call in calls)


def call_name(graph: Graph, call: ModuleCall) -> str:
    """Name a call by its path below the module around it, with its number when it is not the first."""
    parent = None if call.parent is None else graph.modules[call.parent].path
    name = call.path.removeprefix(f"{parent}.") if parent else call.path
    return (name or "model") + (f" (call {call.call})" if call.call > 1 else "")


def input_nrs(links: Sequence[Link]) -> str:
    """Name the receiving inputs, unless all are the first, as nearly always."""
    numbers = sorted({link.edge.input_nr for link in links})
    return f" (input_nr {', '.join(map(str, numbers))})" if any(numbers) else ""
