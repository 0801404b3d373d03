"""Every text that a rule can print as a remedy, read from the source of the rules, with {} for what is filled in.

What is passed as `remedy=` is followed backwards: through variables, the functions that return it, the tables that hold
it, and the arguments of calls. A literal of at least three words is a template; shorter ones only join others.
"""

import ast
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import gradinspect.checks.rules

RULES = Path(gradinspect.checks.rules.__file__).parent
_RECORDS = {"Cause": 2, "DetachRemedy": 1}  # the place of the remedy among the arguments of each
_MIN_WORDS = 3
_MIN_COMMON = 18  # characters, of a text that is long enough
_FILLED = re.compile(r"\{[^}]*\}")
NodeT = TypeVar("NodeT", bound=ast.AST)


class Value(NamedTuple):
    """An expression, the function that it stands in, and which element of its value is meant."""

    expression: ast.expr
    function: ast.FunctionDef | None
    element: int | None = None


class Sources:
    """The trees of all modules of rules, and what their names mean."""

    def __init__(self) -> None:
        """Parse them."""
        self.path_of: dict[ast.AST, Path] = {}
        self.parts: dict[ast.FunctionDef, list[ast.AST]] = {}
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.calls: dict[str, list[tuple[ast.Call, ast.FunctionDef | None]]] = {}
        self.globals: dict[str, list[ast.expr]] = {}
        for path in sorted(RULES.rglob("*.py")):
            self._read(path, ast.parse(path.read_text()))

    def templates(self) -> dict[str, str]:
        """Return each template, with the place of its source."""
        todo = list(self._starts())
        seen: set[tuple[ast.expr, int | None]] = set()
        found: dict[str, str] = {}
        while todo:
            value = todo.pop()
            if (value.expression, value.element) in seen:
                continue
            seen.add((value.expression, value.element))
            text = _literal(value.expression)
            if text is not None and len(text.split()) >= _MIN_WORDS:
                path = self.path_of[value.expression].relative_to(RULES)
                found.setdefault(text.strip(), f"{path}:{value.expression.lineno}")
            todo += self._behind(value)
        return found

    def _read(self, path: Path, tree: ast.Module) -> None:
        owner: dict[ast.AST, ast.FunctionDef] = {}
        nodes = list(ast.walk(tree))
        self.path_of |= dict.fromkeys(nodes, path)
        for function in (one for one in nodes if isinstance(one, ast.FunctionDef)):
            self.functions.setdefault(function.name, []).append(function)
            self.parts[function] = list(ast.walk(function))
            owner |= dict.fromkeys(self.parts[function], function)
        for call in (one for one in nodes if isinstance(one, ast.Call)):
            self.calls.setdefault(_name(call.func), []).append((call, owner.get(call)))
        for one in tree.body:
            for target in _targets(one):
                self.globals.setdefault(ast.unparse(target), []).append(one.value)  # type: ignore[attr-defined]

    def _starts(self) -> Iterator[Value]:
        for name, calls in self.calls.items():
            for call, function in calls:
                for keyword in call.keywords:
                    if keyword.arg == "remedy" and name != "Rule":
                        yield Value(keyword.value, function)
                place = _RECORDS.get(name)
                if place is not None and len(call.args) > place:
                    yield Value(call.args[place], function)

    def _nearest(self, found: Sequence[NodeT], value: Value) -> list[NodeT]:
        """Return those of the same module, or all if it has none."""
        here = [one for one in found if self.path_of[one] == self.path_of[value.expression]]
        return here or list(found)

    def _behind(self, value: Value) -> Iterator[Value]:
        match value.expression:
            case ast.Tuple(elts=elements) if value.element is not None:
                yield Value(elements[value.element], value.function)
            case ast.Name(id=name):
                yield from self._named(name, value)
            case ast.Call(func=function):
                yield from self._called(value.expression, function, value)
            case ast.JoinedStr():
                yield from (value._replace(expression=part, element=None) for part in _parts(value.expression))
            case _:
                yield from (value._replace(expression=part) for part in _parts(value.expression))

    def _called(self, call: ast.Call, function: ast.expr, value: Value) -> Iterator[Value]:
        name = _name(function)
        if isinstance(function, ast.Attribute) and name not in self.functions:  # a method of a text
            yield value._replace(expression=function.value)
            yield from (value._replace(expression=one, element=None) for one in call.args)
        called = self.functions.get(name) or self._in_table(function, value)
        for one in self._nearest(called, value):
            for part in self.parts[one]:
                if isinstance(part, ast.Return) and part.value is not None:
                    yield Value(part.value, one, value.element)

    def _in_table(self, function: ast.expr, value: Value) -> list[ast.FunctionDef]:
        """List the functions of a table such as `_WORDS[kind](fact)`."""
        tables = self.globals.get(ast.unparse(function.value), ()) if isinstance(function, ast.Subscript) else ()
        names = [
            one.id for table in self._nearest(tables, value) for one in ast.walk(table) if isinstance(one, ast.Name)
        ]
        return [one for name in names for one in self._nearest(self.functions.get(name, ()), value)]

    def _named(self, name: str, value: Value) -> Iterator[Value]:
        function = value.function
        parts = [] if function is None else self.parts[function]
        for part in parts:
            for target in _targets(part):
                if ast.unparse(target) == name:
                    yield Value(part.value, function, value.element)  # type: ignore[attr-defined]
                for place, one in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
                    if ast.unparse(one) == name:
                        yield Value(part.value, function, place)  # type: ignore[attr-defined]
        arguments = [] if function is None else [one.arg for one in function.args.args]
        if function is not None and name in arguments:
            place = arguments.index(name)
            for call, caller in self.calls.get(function.name, ()):
                given = [*call.args[place : place + 1], *(one.value for one in call.keywords if one.arg == name)]
                yield from (Value(one, caller, value.element) for one in given)
        yield from (Value(one, None, value.element) for one in self._nearest(self.globals.get(name, ()), value))


def is_shown(template: str, advice: str) -> bool:
    """Return whether a part of a printed remedy has most of what a template says between what is filled in."""
    longest = max(map(len, _FILLED.split(template)))
    size, text = math.ceil(min(_MIN_COMMON, 0.8 * longest)), _FILLED.sub("\0", template)
    return any(text[start : start + size] in advice for start in range(len(text) - size + 1))


def _targets(statement: ast.AST) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return [target]
    return []


def _parts(expression: ast.expr) -> list[ast.expr]:
    """List the expressions of which one becomes the value of another, or a part of it."""
    match expression:
        case ast.JoinedStr(values=parts):
            return [part.value for part in parts if isinstance(part, ast.FormattedValue)]
        case ast.Dict(values=values) | ast.BoolOp(values=values):
            return values
        case ast.Subscript(value=of):
            return [of]
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return [one, other]
    return []


def _literal(expression: ast.expr) -> str | None:
    match expression:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in values)
    return None


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
