"""The symbols of the tree, and the names of calls and inputs in it."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gradinspect.analyses.structure.call_names import name_of_call, short_name
from gradinspect.analyses.structure.copy_ranges import name_together
from gradinspect.analyses.structure.name_folding import fold_name, listed_numbers
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
    """Name one call, or many: by their numbers or indices, or by the first and last."""
    first, last = calls[0], calls[-1]
    if len({call.path for call in calls}) == 1 < len(calls):
        name = name_of_call(graph, msgspec.structs.replace(first, call=1))
        return f"{name} calls {listed_numbers(sorted({call.call for call in calls}))}"
    names = (name_of_call(graph, call) for call in dict.fromkeys((first, last)))
    return fold_name(_modules(graph, calls)) or f" {ellipsis} ".join(names)


def module_names(graph: Graph, calls: Sequence[ModuleCall], ellipsis: str) -> str:
    """Name the modules of some calls, of which each copy of a block has one: how many there are is said of all."""
    return name_together(_modules(graph, calls)).replace(" … ", f" {ellipsis} ")


def _modules(graph: Graph, calls: Sequence[ModuleCall]) -> list[str]:
    """Name the module of each call relative to its caller."""
    callers = (None if call.parent is None else graph.modules[call.parent].path for call in calls)
    return [short_name(call.path, caller, graph.model_name) for call, caller in zip(calls, callers, strict=True)]


def input_nrs(links: Sequence[Link]) -> str:
    """Name the receiving inputs, unless all are the first, which is the common case."""
    numbers = sorted({link.edge.input_nr for link in links})
    return f" (input_nr {', '.join(map(str, numbers))})" if any(numbers) else ""
