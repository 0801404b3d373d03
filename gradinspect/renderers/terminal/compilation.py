"""What torch.compile did up to a recorded moment, as a few lines for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from gradinspect.analyses.memory.compiled import compiled_kept, kept_sentences
from gradinspect.analyses.structure.call_names import OUTERMOST
from gradinspect.analyses.structure.name_folding import name_by_indices
from gradinspect.graph import Compilation, Graph, GraphBreak, Recompile
from gradinspect.renderers.terminal.page import GAP, Page
from gradinspect.units import brief, format_count

_UNCOMPILED = "{}: .compile() compiles no code of torch.nn itself, torch.compile(module) does"
MAX_ROWS = 4  # of breaks, and of functions that were compiled again


class CompilationPage(Page):
    """Writes how many graphs there are, what they keep, where they break, and why functions were compiled again."""

    def lines(self, graph: Graph, *, max_rows: int | None = MAX_ROWS) -> Iterator[Text]:
        """Yield an empty line and the note; nothing, if nothing was compiled.

        Args:
            graph: The record.
            max_rows: How many of each kind; None: all.
        """
        done = graph.compilation
        if done is None:
            return
        yield Text()
        yield from self.wrapped(f"{format_compilation(done)} (--eager: none)")
        kept = [text for text, _ in kept_sentences(compiled_kept(graph))]
        breaks = [self._break(graph, one) for one in done.breaks]
        again = [self._again(graph, group) for group in _by_function(graph, done)]
        for rows in (kept, [*self._uncompiled(graph, done)], breaks, again):
            for row in rows[:max_rows]:
                yield from self.wrapped(row, "dim", indent=GAP)
            if max_rows is not None and len(rows) > max_rows:
                yield Text(f"{GAP}and {len(rows) - max_rows:,} more: --full", "dim")

    def _uncompiled(self, graph: Graph, done: Compilation) -> Iterator[str]:
        """Name the modules that `.compile()` left as they are; those of equal blocks in one row."""
        if done.uncompiled:
            yield self._row("eager", "", 1, uncompiled_words(done.uncompiled, graph.model_name))

    def _break(self, graph: Graph, one: GraphBreak) -> str:
        end = ", so its function is not compiled" if one.is_skipped else ""
        return self._row("break", _place(graph, one.frame), one.count, f"{brief(one.reason)}{end}")

    def _again(self, graph: Graph, group: list[Recompile]) -> str:
        """Say why a function was compiled again, the last time."""
        last = group[-1]
        name = f"{brief(last.function)}: " if last.function else ""
        end = "; too often, so what is new runs in eager" if last.gives_up else ""
        count = sum(one.count for one in group if not one.gives_up)
        return self._row("again", _place(graph, last.frame), count, f"{name}{brief(last.reason)}{end}")

    def _row(self, kind: str, place: str, count: int, reason: str) -> str:
        times = self.times(count)
        return self.visible(GAP.join(filter(None, (kind, place, times, reason))))


def _place(graph: Graph, frame: int | None) -> str:
    found = None if frame is None else graph.frames[frame]
    return "" if found is None else f"{found.file.rpartition('/')[2]}:{found.line}"


def format_compilation(done: Compilation) -> str:
    """Say how many graphs, breaks and recompiles there were."""
    graphs = format_count(done.num_graphs, "graph")
    breaks = format_count(done.num_breaks, "graph break")
    least = "at least " if done.is_cut else ""
    again = format_count(done.num_recompiles, "recompile")
    return f"torch.compile so far: {graphs}, {breaks}, {least}{again}"


def uncompiled_words(paths: Sequence[str], model: str = OUTERMOST) -> str:
    """Name the modules that `module.compile()` leaves as they are, and say what compiles them."""
    return _UNCOMPILED.format(brief(name_by_indices(path or model for path in paths)))


def _by_function(graph: Graph, done: Compilation) -> Iterator[list[Recompile]]:
    """Yield what was compiled again, function by function, in the order of their lines."""

    def place(one: Recompile) -> tuple[str, int, str]:
        found = None if one.frame is None else graph.frames[one.frame]
        return ("", 0, one.function) if found is None else (found.file, found.line, one.function)

    for _, group in groupby(sorted(done.recompiles, key=place), place):
        yield list(group)
