"""Loops over batches whose iterator was made before the loop over epochs, and can be gone through once.

NOTE [Read once]
`batches = zip(xs, ys)` gives its pairs once: the second epoch has no batch, and says nothing. So for the loop around a
backward call it is asked what it goes through, and for each loop around that one, in its own function or in one that
called it, whether the same object was there before it began. It counts only if it surely ends: a zip of lists, or a
generator expression over one. A generator function may go on for good, and a loop with a break may leave the rest for
the next round.
"""

import ast
from collections.abc import Callable, Iterator
from inspect import getattr_static
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any, NamedTuple

from torch.utils.data import BatchSampler

from gradinspect.checks.facts.targets import BatchesReadOnce
from gradinspect.graph import Frame
from gradinspect.recording.frames import is_own_file, line_at, source_line
from gradinspect.recording.names.variables import local_variables, own_variables
from gradinspect.recording.source_structure import assignment_before, contains, enclosing
from gradinspect.torch_api.data.loaders import NEXT_BATCH, batches_of

MOST_FRAMES = 12
MOST_LINES = 64
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ENDING: tuple[type, ...] = (type(iter([])), type(iter(())), type(iter(range(0))), type(iter({})))
_WRAPPING: tuple[type, ...] = (zip, map, filter, enumerate)
_DEEPEST = 4  # iterators in iterators


class _Loop(NamedTuple):
    """A loop that goes through an iterator."""

    node: ast.For
    name: str
    value: object


class ReadOnceLog:
    """Looks at the loops around backward calls. NOTE [Read once]."""

    def __init__(self, folder: Path) -> None:
        """Name files relative to a folder."""
        self._folder = folder
        self._lines: set[tuple[str, int]] = set()
        self._found: list[BatchesReadOnce] = []

    def begin(self, frame: FrameType | None) -> None:
        """Look at a backward call, given the program's line."""
        key = ("", 0) if frame is None else (frame.f_code.co_filename, line_at(frame))
        if frame is None or key in self._lines or len(self._lines) >= MOST_LINES:
            return
        self._lines.add(key)
        frames = list(_own_frames(frame))
        for place, inner in enumerate(frames):
            for loop in _loops_over_iterators(inner):
                self._look(loop, frames[place:])

    def _look(self, loop: _Loop, frames: list[FrameType]) -> None:
        """Search for a loop around another one before which the same iterator was there."""
        for frame in frames:
            file, line = frame.f_code.co_filename, loop.node.lineno if frame is frames[0] else line_at(frame)
            outer = [one for one in _loops_around(file, line) if one is not loop.node]
            names = [one for one, value in _variables(frame).items() if value is loop.value]
            found = ((name, assignment_before(file, name, line)) for name in names if outer)
            name, made = next(((name, made) for name, made in found if made is not None), ("", None))
            if made is not None:
                if not contains(outer[-1], made.lineno):
                    self._note(loop, frames[0], made, (file, name, outer[0].lineno))
                return

    def _note(self, loop: _Loop, frame: FrameType, made: ast.Assign, outer: tuple[str, str, int]) -> None:
        file, name, line = outer
        self._found.append(
            BatchesReadOnce(
                name=name,
                value=ast.unparse(made.value),
                made=source_line(file, made.lineno, self._folder),
                loop=source_line(frame.f_code.co_filename, loop.node.lineno, self._folder),
                outer=source_line(file, line, self._folder),
            )
        )

    def facts(self, _frame_of: Callable[[int | None], Frame | None]) -> Iterator[BatchesReadOnce]:
        """Yield what was found."""
        yield from self._found


def _own_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the program, innermost first."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        if is_own_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _variables(frame: FrameType) -> dict[str, Any]:
    return {**own_variables(frame), **local_variables(frame)}


def _loops_around(file: str, line: int) -> list[ast.For | ast.While]:
    """List the loops around a line of one function, the innermost first."""
    found: list[ast.For | ast.While] = []
    for one in enclosing(file, line):
        if isinstance(one, _FUNCTIONS):
            break
        if isinstance(one, (ast.For, ast.While)):
            found.append(one)
    return found


def _loops_over_iterators(frame: FrameType) -> Iterator[_Loop]:
    """Yield the loops around the line that runs which go through all of an iterator in a variable."""
    variables = _variables(frame)
    for loop in _loops_around(frame.f_code.co_filename, line_at(frame)):
        leaves = any(isinstance(part, (ast.Break, ast.Return)) for part in ast.walk(loop))
        match loop:
            case ast.For(iter=ast.Name(id=name) | ast.Call(args=[ast.Name(id=name), *_])) if not leaves:
                if name in variables and _ends(variables[name]):
                    yield _Loop(loop, name, variables[name])


def _ends(iterator: object, depth: int = 0) -> bool:
    """Return whether an iterator surely gives what it has once. Only those of Python and of a DataLoader are known."""
    if type(iterator) in _WRAPPING and depth < _DEEPEST:
        parts = iterator.__reduce__()[1]
        return any(_ends(part, depth + 1) for part in (parts if isinstance(parts, tuple) else ()))
    if type(iterator) is GeneratorType and depth < _DEEPEST:
        inside = iterator.gi_frame if iterator.gi_code.co_name == "<genexpr>" else None
        return inside is not None and _ends(local_variables(inside).get(".0"), depth + 1)
    return type(iterator) in _ENDING or _is_of_a_loader(iterator)


def _is_of_a_loader(iterator: object) -> bool:
    """Return whether an iterator is that of a DataLoader with a number of batches."""
    advance = getattr_static(type(iterator), "__next__", None)
    is_one = NEXT_BATCH is not None and getattr(advance, "__code__", None) is NEXT_BATCH
    return is_one and type(batches_of(iterator)) is BatchSampler
