"""What the page shows beyond the record: formulas, and the code around a line.

What comes in: a `Graph`, and functions that look up formulas and source lines. What goes out: texts.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import dedent

from gradinspect.analyses.explain.explanation import Explanation
from gradinspect.graph import Frame, Graph, Record
from gradinspect.renderers.terminal.nodes.panel_page import Explain
from gradinspect.source import ReadSource

LINES_AROUND = 2
MAX_LINE = 400  # characters shown of a line


class CodeAround(Record, frozen=True, array_like=True):
    """A source line with its context, dedented."""

    before: tuple[str, ...]
    line: str
    after: tuple[str, ...]


class PageFacts(Record, frozen=True, kw_only=True):
    """What is known beyond the record."""

    formulas: tuple[tuple[str, tuple[str, ...]], ...] = ()  # node class -> lines
    around: tuple[tuple[int, CodeAround], ...] = ()  # index into Graph.frames -> code


def page_facts(graph: Graph, explain: Explain, read_source: ReadSource) -> PageFacts:
    """Look up the formulas of each node class, and the code around each source line.

    Args:
        graph: The graph.
        explain: Returns the explanation of a class.
        read_source: Reads a file named in the record; returns None if it is missing.
    """
    known = ((name, explain(name)) for name in sorted({node.name for node in graph.nodes}))
    frames = sorted({node.frame for node in graph.nodes if node.frame is not None})
    around = ((frame, _around(graph.frames[frame], read_source)) for frame in frames)
    return PageFacts(
        formulas=tuple((name, tuple(formula_lines(one))) for name, one in known if one is not None),
        around=tuple((frame, code) for frame, code in around if code is not None),
    )


def formula_lines(known: Explanation) -> Iterator[str]:
    """Yield the formulas of a class, with the inputs each is for."""
    yield from filter(None, (known.signature, known.text))
    for formula, group in groupby(known.gradients, key=lambda gradient: gradient.formula):
        yield f"{', '.join(gradient.argument for gradient in group)}: {formula}"


def _around(frame: Frame, read_source: ReadSource) -> CodeAround | None:
    """Read a line with its context, unless the file has changed since."""
    lines = read_source(frame.file)
    if not lines or not 0 < frame.line <= len(lines) or not _is_same(lines[frame.line - 1], frame.code):
        return None
    first = max(frame.line - 1 - LINES_AROUND, 0)
    shown = [line[:MAX_LINE] for line in lines[first : frame.line + LINES_AROUND]]
    block = _dedented(shown)
    place = frame.line - 1 - first
    return CodeAround(before=tuple(block[:place]), line=block[place], after=tuple(block[place + 1 :]))


def _is_same(line: str, code: str) -> bool:
    return line.strip() == code.strip()


def _dedented(lines: Sequence[str]) -> list[str]:
    return dedent("\n".join(line.expandtabs(4).rstrip() for line in lines)).split("\n")
