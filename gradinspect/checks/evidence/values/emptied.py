"""Iterators over parameters that were given to a clipping function when nothing was left in them.

NOTE [Emptied iterators]
`filter(...)` and `model.parameters()` can be gone through once, and the optimizer has done so. A list without
parameters may be meant, so what counts is that a variable of the program is an iterator, and gave nothing twice.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any

from torch.nn.utils import clip_grad

from gradinspect.checks.facts.training import EmptiedIterator
from gradinspect.recording.frames import is_own_file, line_at, source_line
from gradinspect.recording.names.variables import local_variables
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.source_structure import assignment_before, enclosing

CLIP_FILE = clip_grad.__file__
LEAST_TIMES = 2
ITERATORS: tuple[type, ...] = (filter, map, chain, GeneratorType)


@dataclass
class EmptiedIterators:
    """Notes calls that clip nothing. The log calls it with what it sees."""

    recorder: Recorder
    folder: Path = field(default_factory=Path)  # files below it are named relative to it
    _found: Counter[tuple[int, str]] = field(default_factory=Counter)  # frames, and variables there

    def made(self, frame: FrameType | None) -> None:
        """Look at a call of torch.tensor(): the norm of no gradients is made so."""
        inside = frame
        while inside is not None and inside.f_code.co_filename == CLIP_FILE:
            given, limit = (local_variables(inside).get(name) for name in ("parameters", "max_norm"))
            inside = inside.f_back
            if given == [] and limit is not None and limit != float("inf"):
                self._look(inside)
                return

    def facts(self) -> Iterator[EmptiedIterator]:
        """Yield what was given so more than once."""
        for (number, name), count in self._found.items():
            if count >= LEAST_TIMES:
                code, line = next(self.recorder.frames.chain(number))
                made = assignment_before(code.co_filename, name, line)
                yield EmptiedIterator(
                    name=name,
                    value="" if made is None else ast.unparse(made.value),
                    made=None if made is None else source_line(code.co_filename, made.lineno, self.folder),
                    clipped=self.recorder.frames.record(number, self.folder),
                )

    def _look(self, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename == CLIP_FILE:
            frame = frame.f_back
        number = self.recorder.frames.number_of(frame)
        if frame is None or number is None or not is_own_file(frame.f_code.co_filename):
            return
        for name in _first_arguments(frame):
            if type(_value(name, frame)) in ITERATORS:
                self._found[number, name] += 1


def _first_arguments(frame: FrameType) -> Iterator[str]:
    """Yield what the calls of a clipping function on a line are given first."""
    for node in enclosing(frame.f_code.co_filename, line_at(frame)):
        match node:
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=[first, *_]) if "clip_grad" in name:
                yield ast.unparse(first)


def _value(name: str, frame: FrameType) -> Any:
    """Return the value of a variable, or of an attribute of one, without running code."""
    first, _, attribute = name.partition(".")
    value = local_variables(frame).get(first, frame.f_globals.get(first))
    if not attribute:
        return value
    try:
        return object.__getattribute__(value, "__dict__").get(attribute)
    except AttributeError:
        return None
