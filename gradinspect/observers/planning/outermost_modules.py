"""The outermost modules that a program calls, in the order of their first calls, and what the program calls them."""

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple
from weakref import ReferenceType, ref

from torch import nn

from gradinspect.analyses.planning.changes import OutermostModule
from gradinspect.analyses.planning.code import can_be_written, part_of
from gradinspect.recording.frames import short_file_name, user_frames
from gradinspect.recording.names.names import module_paths
from gradinspect.recording.names.variables import Variable, local_variables, variables_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.threads import NOWHERE
from gradinspect.syntax import parse


class Called(NamedTuple):
    """A line of the program that calls a module."""

    file: str
    line: int
    name: str  # of the module


class OutermostModules:
    """Collects them, while the recorder is active."""

    def __init__(self, recorder: Recorder) -> None:
        """Start with none."""
        self._recorder = recorder
        self._modules: list[ReferenceType[nn.Module]] = []
        self._numbers: dict[int, int] = {}
        self._calls: list[tuple[Called, ...]] = []  # of each, its first call

    def entered(self, module: nn.Module) -> int | None:
        """Note a call that begins; return the number of an outermost module that is called for the first time."""
        if not self.is_entering or self.number_of(module) is not None:
            return None
        number = self._numbers[id(module)] = len(self._modules)
        self._modules.append(ref(module))
        self._calls.append(tuple(_calls_of(module, sys._getframe(1))))
        return number

    @property
    def is_entering(self) -> bool:
        """Whether a call of an outermost module begins."""
        windows = self._recorder.module_windows
        return bool(windows) and windows[-1].parent == NOWHERE

    def number_of(self, module: nn.Module) -> int | None:
        """Return the number of a module; None if it has never been an outermost one."""
        number = self._numbers.get(id(module))
        return number if number is not None and self._modules[number]() is module else None

    def alive(self) -> Iterator[tuple[int, nn.Module]]:
        """Yield those that are still there."""
        for number, reference in enumerate(self._modules):
            module = reference()
            if module is not None:
                yield number, module

    def roots(self, base_folder: Path) -> tuple[OutermostModule, ...]:
        """Describe them all."""
        return tuple(_root(calls, base_folder) for calls in self._calls)


def _calls_of(module: nn.Module, frame: FrameType | None) -> Iterator[Called]:
    """Say where a module is called from, line by line outward, and by what name it is known there."""
    for user in user_frames(frame):
        name = _name_in(variables_in({**user.f_globals, **local_variables(user)}), module)
        if name:
            yield Called(user.f_code.co_filename, user.f_lineno, name)


def _name_in(variables: Iterable[Variable], module: nn.Module) -> str:
    """Name a module as a variable, or as a part of one; "" if it is neither."""
    modules = [variable for variable in variables if isinstance(variable.value, nn.Module)]
    modules = [variable for variable in modules if can_be_written(variable.name)]
    for variable in modules:
        if variable.value is module:
            return variable.name
    for variable in modules:
        for path, part in module_paths(variable.value):
            if part is module:
                return part_of(variable.name, path)
    return ""


def _root(calls: Sequence[Called], base_folder: Path) -> OutermostModule:
    """Describe a module by the innermost line that calls it where it is also assigned."""
    for called in calls:
        after = ready_after(called)
        if after is not None:
            end = after.end_lineno or after.lineno
            return OutermostModule(
                name=called.name,
                after=f"{short_file_name(called.file, base_folder)}:{end}",
                code=linecache.getline(called.file, end).strip(),
                indent=after.col_offset,
            )
    return OutermostModule(name=calls[0].name if calls else "model")


def ready_after(called: Called) -> ast.stmt | None:
    """Find the last statement before a call that assigns the name, in a block that the call is in too."""
    file, line, name = called
    try:
        tree = parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    found: ast.stmt | None = None
    block: list[ast.stmt] = tree.body
    while block:
        inner: list[ast.stmt] = []
        for statement in block:
            if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                inner = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
                break
            if statement.lineno > line:
                break
            if _assigns(statement, name):
                found = statement
        block = inner
    return found


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement, or one inside it, assigns a name of its own scope."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else getattr(node, "target", None)
        for target in targets if isinstance(targets, list) else [targets]:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            if any(isinstance(part, ast.AST) and ast.unparse(part) == name for part in parts):
                return True
        todo.extend(ast.iter_child_nodes(node))
    return False
