"""The custom autograd.Functions of a program, checked numerically (finite differences) after it has ended."""

import inspect
import linecache
from collections.abc import Collection, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Self

from msgspec.structs import replace

from gradinspect.checks.evidence.custom_functions.calls import CustomCalls
from gradinspect.checks.evidence.custom_functions.gradcheck import check_function
from gradinspect.checks.facts.values import CheckedFunction
from gradinspect.checks.findings import listed
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.recording.frames import line_record
from gradinspect.runner.engine import EngineInterceptor
from gradinspect.units import format_count

MAX_DECORATORS = 5


def custom_functions(graph: Graph) -> dict[str, Node]:
    """Return a node of each custom Function in a graph, by the Function's qualified name."""
    found: dict[str, Node] = {}
    for node in graph.nodes:
        if node.kind == "custom" and node.function is not None and not node.function.startswith("torch."):
            found.setdefault(node.function, node)
    return found


def unverified_notes(names: Collection[str]) -> Iterator[str]:
    """Say which Functions were not verified, where nobody has asked for it."""
    if names:
        short = sorted({name.rpartition(".")[2] for name in names})
        yield f"{format_count(len(short), 'custom Function')} not verified ({listed(short)}): --gradcheck does."


class CustomFunctions:
    """Stores a call of each Function, and which are in the observed graphs. Use it as a context manager."""

    def __init__(self, base_folder: Path) -> None:
        """Set up.

        Args:
            base_folder: Files below it are named relative to it.
        """
        self._base_folder = base_folder
        self._calls = CustomCalls()
        self._applied: dict[str, Frame | None] = {}
        self._interceptor: EngineInterceptor | None = None
        self._checked: list[CheckedFunction] | None = None

    def __enter__(self) -> Self:
        """Start storing calls."""
        self._calls.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop storing calls."""
        self._calls.__exit__(*error)

    def note(self, graph: Graph, interceptor: EngineInterceptor) -> None:
        """Store the Functions of a graph; the interceptor is closed while they are checked."""
        self._interceptor = interceptor
        for name, node in custom_functions(graph).items():
            self._applied.setdefault(name, frame_of(graph, node))

    def check(self) -> None:
        """Check each one, once, after the program has ended, so that none of its numbers can change."""
        if self._checked is None and self._interceptor is not None:
            with self._interceptor.closed():
                self._checked = [self._check(name, frame) for name, frame in self._applied.items()]

    def checked(self) -> list[CheckedFunction]:
        """Return the results of the checks."""
        return self._checked or []

    def _check(self, name: str, applied: Frame | None) -> CheckedFunction:
        call = self._calls.take(name)
        if call is None:
            reason = "its call was not recorded, for example because it overrides apply"
            return CheckedFunction(name=name.rpartition(".")[2], verdict="not checked", reason=reason, applied=applied)
        return replace(check_function(call), applied=applied, defined=self._defined(call.function))

    def _defined(self, function: Any) -> Frame | None:
        """Find the line of `def backward`, below its decorators."""
        code = getattr(inspect.unwrap(function.backward), "__code__", None)
        if not isinstance(code, CodeType):
            return None
        first = code.co_firstlineno
        lines = range(first, first + MAX_DECORATORS)
        line = next((line for line in lines if "def " in linecache.getline(code.co_filename, line)), first)
        return line_record(code, line, self._base_folder)
