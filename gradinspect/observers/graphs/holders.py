"""What holds a tensor: a path of names from the user's variables, and the line that stored it.

The search starts from the program's variables: local variables of the running frames and globals of its modules. The
line is found in the source: the statement that stores under the last name of the path.
"""

import ast
import collections
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from types import FrameType, FunctionType, ModuleType, NoneType
from typing import Any, NamedTuple, TypeAlias

import torch

from gradinspect.recording.frames import is_own_file, line_name, user_frames
from gradinspect.recording.names.variables import isinstance_safely, local_variables
from gradinspect.recording.notebook_cells import cell_name
from gradinspect.recording.source_text import line_of, lines_of
from gradinspect.syntax import parse
from gradinspect.torch_api.modules import HOLDERS as OF_MODULES
from gradinspect.torch_api.patching.classes import is_one_of

MAX_OBJECTS = 200_000  # that may hold others
MAX_VALUES = 1_000_000  # with those that hold nothing
MAX_ELEMENTS = 10_000  # of one container
MAX_LINES = 2
_STORING = frozenset(
    ("append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put", "push", "__setitem__")
)
_REMOVING = frozenset(("pop", "popleft", "popitem", "clear", "remove"))
_WITHOUT_GRAPH = (".item()", ".detach()", ".tolist()", "float(")
_INDEX = re.compile(r"\[[^\]]*\]")


class Store(NamedTuple):
    """A statement that stores under some name."""

    file: str
    line: int
    code: str
    adds: bool  # to earlier values, rather than replacing them

    def describe(self) -> str:
        """Format it as `train.py:22  losses.append(loss)`."""
        return f"{line_name(self.file, self.line)}  {self.code}"


class HeldGroup(NamedTuple):
    """Tensors that are held by one variable or container."""

    name: str  # "losses[*]"; "" if no variable holds them
    tensors: list[torch.Tensor]
    stored_at: tuple[Store, ...]
    is_cut: bool = False  # the program also removes elements of it, so that it has a window of the latest ones


# A value, the place of what holds it, and how its path goes on from there, with what to put in: a path is only written
# for what was searched for. A plain tuple, because there are as many as values.
_Place: TypeAlias = "tuple[Any, _Place | None, str, object]"


def _path_of(place: _Place) -> str:
    """Write the path of a place: `model.losses[3]`."""
    steps: list[str] = []
    inner: _Place | None = place
    while inner is not None:
        _, inner, form, step = inner
        steps.append(form.format(step))
    return "".join(reversed(steps))


class HolderSearch:
    """Searches for tensors from the user's variables."""

    def __init__(self, frame: FrameType | None) -> None:
        """Search from this frame outward, and from the globals of the user's modules."""
        self._frames = list(user_frames(frame))

    def groups(self, tensors: Sequence[torch.Tensor]) -> list[HeldGroup]:
        """Group tensors that are held in the same container or under the same name, largest group first."""
        paths = self._paths({id(tensor) for tensor in tensors})
        found: dict[str, list[torch.Tensor]] = {}
        for tensor in tensors:
            path = paths.get(id(tensor), "")
            found.setdefault(_INDEX.sub("[*]", path) if path.endswith("]") else path, []).append(tensor)
        groups = [
            HeldGroup(name, held, tuple(self._stored_at(name)), self._is_cut(name))
            if name
            else HeldGroup(name, held, ())
            for name, held in found.items()
        ]
        return sorted(groups, key=lambda group: (-len(group.tensors), group.name))

    def _paths(self, wanted: set[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        todo = collections.deque(self._named())
        seen: set[int] = set()
        holding, num_left = _Holding(), MAX_VALUES
        while todo and len(seen) < MAX_OBJECTS and num_left > 0 and len(found) < len(wanted):
            place = todo.popleft()
            value = place[0]
            if id(value) in seen:
                continue
            seen.add(id(value))
            if id(value) in wanted:
                found[id(value)] = _path_of(place)
            for inner in _inside(value, place):
                num_left -= 1
                if holding.may(type(inner[0])):
                    todo.append(inner)
        return found

    def _named(self) -> Iterator[_Place]:
        for frame in self._frames:
            for name, value in local_variables(frame).items():
                yield value, None, "{}", name
        for module in list(sys.modules.values()):
            if _is_of_user(module):
                prefix = "" if module.__name__ == "__main__" else f"{module.__name__}."
                for name, value in list(vars(module).items()):
                    if not name.startswith("__") and not isinstance_safely(value, (ModuleType,)):
                        yield value, None, "{}", prefix + name

    def _stored_at(self, path: str) -> Iterator[Store]:
        """Find the statements that store under the last name of a path; what stores a number has no graph."""
        lines = list(dict.fromkeys(store for file in self._files() for store in stores_of(file, _last_name(path))))
        graphs = [store for store in lines if not any(word in store.code for word in _WITHOUT_GRAPH)]
        return islice(graphs or lines, MAX_LINES)

    def _is_cut(self, path: str) -> bool:
        """Return whether a statement removes elements from what the last name of a path holds."""
        name = _last_name(path)
        return any(removes_elements(node, name) for file in self._files() for node in _statements(file))

    def _files(self) -> dict[str, None]:
        files = dict.fromkeys(frame.f_code.co_filename for frame in self._frames)
        files |= dict.fromkeys(file for file in list(linecache.cache) if cell_name(file))
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        return files if main is None else {**files, main: None}


def _is_of_user(module: Any) -> bool:
    """Return whether a module is part of the program, rather than installed."""
    if not isinstance_safely(module, (ModuleType,)):
        return False
    file = getattr(module, "__file__", None)
    if file is None and module.__name__ == "__main__":
        return True  # of a notebook, or at a prompt
    return isinstance(file, str) and is_own_file(file)


_HOLDS_NOTHING = (str, bytes, int, float, complex, NoneType, ModuleType, type)
_CONTAINERS = (list, tuple, collections.deque, set, frozenset)


class _Holding:
    """Tracks of each class that was asked for whether its instances may hold something."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[type, bool]] = {}  # by identity: a metaclass may define `==`, and no hash

    def may(self, kind: type) -> bool:
        known = self._known.get(id(kind))
        if known is None:
            known = self._known[id(kind)] = kind, not issubclass(kind, _HOLDS_NOTHING)
        return known[1]


def _inside(value: Any, place: _Place) -> Iterator[_Place]:
    """Yield what a container, an object or a function holds, without running its code."""
    kind = type(value)
    if issubclass(kind, _HOLDS_NOTHING):
        return
    if issubclass(kind, dict):
        for key, item in islice(dict.items(value), MAX_ELEMENTS):
            yield item, place, "[{!r}]" if is_one_of(key, (str, int)) else "[...]", key
    elif is_one_of(value, _CONTAINERS):
        for index, item in enumerate(islice(value, MAX_ELEMENTS)):
            yield item, place, "[{}]", index
    elif kind is FunctionType:
        yield from _closed_over(value, place)
    yield from _attributes(value, place)


def _closed_over(function: FunctionType, place: _Place) -> Iterator[_Place]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, place, ".<closure>.{}", name
        except ValueError:  # not assigned yet
            continue


def _attributes(value: Any, place: _Place) -> Iterator[_Place]:
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if type(attributes) is not dict:
        return
    for name, item in list(islice(attributes.items(), MAX_ELEMENTS)):
        if name in OF_MODULES and isinstance_safely(item, (dict,)):
            for inner, part in list(dict.items(item)):
                yield part, place, ".{}", inner
        else:
            yield item, place, ".{}", name


def _last_name(path: str) -> str:
    return _INDEX.sub("", path).rpartition(".")[2]


def _statements(file: str) -> Iterator[ast.stmt]:
    source = "".join(lines_of(file))
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def stores_of(file: str, name: str) -> Iterator[Store]:
    """Yield each statement that stores under a name."""
    statements = list(_statements(file))
    anew = _after_a_new_value(statements, name)
    for node in statements:
        if any(_names(target, name) for target in _targets(node)):
            adds = node not in anew and _adds(node, name)
            yield Store(file, node.lineno, line_of(file, node.lineno), adds)


def _after_a_new_value(statements: list[ast.stmt], name: str) -> set[ast.stmt]:
    """Return the statements before which their own block has given a variable a new value: they add to that."""
    found = set[ast.stmt]()
    for one in statements:
        for block in (getattr(one, part, ()) for part in ("body", "orelse", "finalbody")):
            starts = [place for place, inner in enumerate(block) if _is_new_value(inner, name)]
            found.update(block[starts[0] + 1 :] if starts else ())
    return found


def _is_new_value(statement: ast.stmt, name: str) -> bool:
    if not isinstance(statement, ast.Assign) or not any(_is_variable(one, name) for one in statement.targets):
        return False
    return not any(_is_variable(one, name) for one in ast.walk(statement.value))


def _is_variable(value: ast.AST, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the targets of a statement, unless it assigns an empty container or a constant."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _STORING:
            yield function.value
    elif isinstance(statement, ast.AugAssign):
        yield statement.target
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (one for one, value in _assigned(target, statement.value) if not _is_empty(value))
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None and not _is_empty(statement.value):
        yield statement.target


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what is assigned to what: in `w, kept = x, []` the empty list to `kept`."""
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    is_paired = len(values) == len(target.elts) and not any(isinstance(one, ast.Starred) for one in target.elts)
    yield from zip(target.elts, values if is_paired else [value] * len(target.elts), strict=True)


def _adds(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement accumulates, like `total += loss` and `log[step] = loss`, unlike `last = loss`."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if any(isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant) for target in targets):
        return True
    return isinstance(statement.value, ast.BinOp) and _has_operand(statement.value, name)


def _has_operand(value: ast.expr, name: str) -> bool:
    """Return whether a value is computed from a name by arithmetic, as in `0.9 * mean + 0.1 * loss`."""
    if isinstance(value, ast.BinOp):
        return _has_operand(value.left, name) or _has_operand(value.right, name)
    return _names(value, name)


def removes_elements(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement keeps only a part: `h = h[-3:]`, `del h[0]`, `h.pop(0)`, `ring[i % 3] = x`."""
    match statement:
        case ast.Delete(targets=targets):
            return any(isinstance(target, ast.Subscript) and _names(target, name) for target in targets)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            return any(_assigns_part(*pair, name) for pair in zip(targets, values, strict=True))
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            return _assigns_part(target, value, name) or _removes(value, name)
        case ast.Expr(value=value):
            return _removes(value, name)
    return False


def _assigns_part(target: ast.expr, value: ast.expr, name: str) -> bool:
    if not _names(target, name):
        return False
    if isinstance(target, ast.Subscript):
        cut = target.slice
        return isinstance(cut, ast.Slice) or (isinstance(cut, ast.BinOp) and isinstance(cut.op, ast.Mod))
    is_ring = isinstance(value, ast.Call) and any(word.arg == "maxlen" for word in value.keywords)
    return is_ring or _is_part_of(value, name)


def _removes(value: ast.expr, name: str) -> bool:
    """Return whether an expression calls a method that removes: `oldest = queue.popleft()`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _REMOVING
        and _names(node.func.value, name)
        for node in ast.walk(value)
    )


def _is_part_of(value: ast.expr, name: str) -> bool:
    """Return whether an expression takes a slice of what a name holds."""
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Slice)
        and any(isinstance(inner, ast.expr) and _names(inner, name) for inner in ast.walk(node.value))
        for node in ast.walk(value)
    )


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(args=[], keywords=[]):
            return True
    return False


def _names(target: ast.expr, name: str) -> bool:
    while isinstance(target, ast.Subscript | ast.Starred):
        target = target.value
    match target:
        case ast.Name(id=found) | ast.Attribute(attr=found):
            return found == name
    return False
