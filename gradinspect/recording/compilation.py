"""Record what torch.compile did in this process: graphs, breaks and recompiles, each with its line."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from gradinspect.analyses.selection.name_patterns import containing_paths
from gradinspect.graph import Compilation, Frame, Graph, GraphBreak, Recompile
from gradinspect.recording.frames import is_own_file, is_user_file, source_line
from gradinspect.torch_api.compilations import (
    BUCKETS,
    Break,
    CodeLine,
    graph_breaks,
    has_forgotten,
    num_compiled_graphs,
    recompiles,
)

MAX_KINDS = 200  # of breaks and of recompiles: a record stays small


def with_compilation(graph: Graph, base_folder: Path, uncompiled: tuple[str, ...] = ()) -> Graph:
    """Add what torch.compile has done so far, if it was used.

    Args:
        graph: The record.
        base_folder: Files below it are named relative to it.
        uncompiled: Paths of modules that the program compiles without effect.
    """
    places: dict[CodeLine, int] = {}
    frames = list(graph.frames)

    def frame(place: CodeLine | None) -> int | None:
        if place is None:
            return None
        if place not in places:
            places[place] = len(frames)
            frames.append(_frame(place, base_folder))
        return places[place]

    broken = Counter((one.reason, place_of_break(one), one.is_skipped) for one in graph_breaks())
    again = Counter(recompiles())
    breaks = tuple(
        GraphBreak(reason=reason, frame=number, count=part, is_skipped=is_skipped)
        for (reason, place, is_skipped), count in list(broken.items())[:MAX_KINDS]
        if place is not None or not is_skipped  # a function of torch that is never compiled
        for number, part in (_buckets(graph, count) if reason == BUCKETS else {frame(place): count}).items()
    )
    repeated = tuple(
        Recompile(
            function=one.function, reason=one.reason, frame=frame(_own([one.place])), count=count, gives_up=one.gives_up
        )
        for one, count in list(again.items())[:MAX_KINDS]
    )
    if not (num_compiled_graphs() or breaks or repeated or uncompiled):
        return graph
    found = Compilation(
        num_graphs=num_compiled_graphs(),
        breaks=breaks,
        recompiles=repeated,
        is_cut=has_forgotten(),
        uncompiled=uncompiled,
    )
    return replace(graph, frames=tuple(frames), compilation=found)


def _buckets(graph: Graph, count: int) -> dict[int | None, int]:
    """Return the lines at which the graphs of buckets begin, and how often; torch keeps none.

    They are known if each of those graphs has one node here.
    """
    lines: list[int | None] = []
    for node in graph.nodes:
        if node.kind == "compiled" and node.function is not None:
            lines.append(None)
        elif node.kind == "compiled" and node.frame is not None and not graph.frames[node.frame].is_library:
            lines[-1] = node.frame  # backward goes through the operators of forward from the last to the first
    return dict(Counter(lines)) if len(lines) == count else {None: count}


def run_in_eager(graph: Graph, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those modules that have nodes of eager in a graph, and no compiled one.

    Args:
        graph: The record, in which compiled nodes are not opened.
        paths: Those of the modules.
    """
    places: dict[bool, set[str]] = {True: set(), False: set()}
    for node in graph.nodes:
        if node.module is not None and node.kind != "accumulate_grad":
            places[node.kind == "compiled"].update(containing_paths(graph.modules[node.module].path))
    return tuple(path for path in dict.fromkeys(paths) if path in places[False] - places[True])


def place_of_break(one: Break) -> CodeLine | None:
    """Return the innermost line of the user; of a graph of a library's function, the line in that."""
    own = _own(reversed(one.stack))
    if own is not None or one.is_skipped:
        return own
    return next((place for place in reversed(one.stack) if place.line), None)


def _own(places: Iterable[CodeLine | None]) -> CodeLine | None:
    return next((place for place in places if place is not None and is_user_file(place.file)), None)


def _frame(place: CodeLine, base_folder: Path) -> Frame:
    return replace(source_line(*place, base_folder), is_library=not is_own_file(place.file))
