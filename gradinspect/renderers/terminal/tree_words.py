"""The symbols of the tree, and the names of calls and inputs in it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gradinspect.analyses.structure.outline_rows import Link
from gradinspect.graph import Graph, ModuleCall


class Symbols(NamedTuple):
    """The characters that have an ASCII replacement."""

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
    """Name one call, or the first and last of many."""
    between = f" {ellipsis} "
    if len({call.path for call in calls}) == 1 < len(calls):
        first, last = calls[0], calls[-1]
        return call_name(graph, msgspec.structs.replace(first, call=1)) + f" calls {first.call}{between}{last.call}"
    return between.join(call_name(graph, call) for call in calls)


def call_name(graph: Graph, call: ModuleCall) -> str:
    """Name a call by its path relative to the enclosing module, numbered if it is not the first."""
    parent = None if call.parent is None else graph.modules[call.parent].path
    name = call.path.removeprefix(f"{parent}.") if parent else call.path
    return (name or "model") + (f" (call {call.call})" if call.call > 1 else "")


def input_nrs(links: Sequence[Link]) -> str:
    """Name the receiving inputs, unless all are the first, which is the common case."""
    numbers = sorted({link.edge.input_nr for link in links})
    return f" (input_nr {', '.join(map(str, numbers))})" if any(numbers) else ""
