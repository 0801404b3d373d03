"""The custom autograd.Functions of a program, checked numerically (finite differences) after it has ended."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dis import get_instructions
from itertools import islice
from math import inf
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import Self

from msgspec.structs import replace

from gradinspect.checks.evidence.custom_functions.calls import CustomCall, CustomCalls
from gradinspect.checks.evidence.custom_functions.gradcheck import SURROGATE, check_function
from gradinspect.checks.evidence.custom_functions.one_direction import MOST_FUNCTIONS, checked_in_copy
from gradinspect.checks.evidence.custom_functions.shrinking import WORKABLE
from gradinspect.checks.facts.values import CheckedFunction
from gradinspect.checks.findings import listed
from gradinspect.graph import Frame, Graph, Node, frame_of
from gradinspect.recording.frames import line_record
from gradinspect.recording.source_text import line_of
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


def unverified_notes(
    names: Collection[str], checked: Sequence[CheckedFunction], too_large: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """Say which Functions were not verified, or not in full, where nobody has asked for it.

    Args:
        names: All of them.
        checked: Those that were looked at.
        too_large: Why the calls of some could not be kept.
    """
    for name, why in too_large.items() if names else ():
        yield f"1 custom Function not verified ({name.rpartition('.')[2]}): {why}."
    quickly, wrong, meant = (
        {function.name for function in checked if function.verdict == verdict}
        for verdict in ("one direction", "wrong backward", "surrogate")
    )
    short = {name.rpartition(".")[2] for name in names if name not in too_large} - quickly - wrong - meant
    if short:
        yield f"{format_count(len(short), 'custom Function')} not verified ({listed(sorted(short))}): --gradcheck does."
    if meant:
        yield f"{format_count(len(meant), 'custom Function')} not verified ({listed(sorted(meant))}): {SURROGATE}."
    if quickly:
        count = format_count(len(quickly), "custom Function")
        yield f"{count} verified in a few directions only ({listed(sorted(quickly))}): --gradcheck does it in full."


class CustomFunctions:
    """Stores a call of each Function, and which are in the observed graphs. Use it as a context manager."""

    def __init__(self, base_folder: Path, *, in_full: bool) -> None:
        """Set up.

        Args:
            base_folder: Files below it are named relative to it.
            in_full: Whether to do all that gradcheck does, or to look in a few directions.
        """
        self._base_folder = base_folder
        self.in_full = in_full
        self._calls = CustomCalls(inf if in_full else WORKABLE)
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
        if self._checked is None and self._interceptor is not None and self._applied:
            with self._interceptor.closed():
                names = list(self._applied)
                self._checked = list(map(self._check, names)) if self.in_full else self._check_quickly(names)

    def _check_quickly(self, names: Sequence[str]) -> list[CheckedFunction]:
        """Check those whose calls were recorded. NOTE [Checks in copies]."""
        recorded = {name: call for name in names if (call := self._calls.take(name)) is not None}
        some = dict(islice(recorded.items(), MOST_FUNCTIONS))
        checked = checked_in_copy(list(some.values()))
        return [self._with_lines(one, name, call) for one, (name, call) in zip(checked, some.items(), strict=False)]

    @property
    def too_large(self) -> Mapping[str, str]:
        """Why the calls of some Functions could not be kept, by the limit that an argument is beyond."""
        return {name: why for name, why in self._calls.too_large.items() if name in self._applied}

    def checked(self) -> list[CheckedFunction]:
        """Return the results of the checks."""
        return self._checked or []

    def _check(self, name: str) -> CheckedFunction:
        call = self._calls.take(name)
        if call is None:
            unknown = "its call was not recorded: it overrides apply, or an argument cannot be copied or is gone"
            reason = self._calls.too_large.get(name, unknown)
            applied = self._applied[name]
            return CheckedFunction(name=name.rpartition(".")[2], verdict="not checked", reason=reason, applied=applied)
        return self._with_lines(check_function(call), name, call)

    def _with_lines(self, checked: CheckedFunction, name: str, call: CustomCall) -> CheckedFunction:
        code = getattr(inspect.unwrap(call.function.backward), "__code__", None)
        if not isinstance(code, CodeType):
            return replace(checked, applied=self._applied[name])
        return replace(checked, applied=self._applied[name], defined=self._defined(code), returned=self._returned(code))

    def _returned(self, code: CodeType) -> Frame | None:
        """Find the line of the one `return` of backward."""
        by_line = ((at.positions and at.positions.lineno, at.opname) for at in get_instructions(code))
        lines = {line for line, name in by_line if name == "RETURN_VALUE" and line is not None}
        return line_record(code, min(lines), self._base_folder) if len(lines) == 1 else None

    def _defined(self, code: CodeType) -> Frame:
        """Find the line of `def backward`, below its decorators."""
        first = code.co_firstlineno
        lines = range(first, first + MAX_DECORATORS)
        line = next((line for line in lines if "def " in line_of(code.co_filename, line)), first)
        return line_record(code, line, self._base_folder)
