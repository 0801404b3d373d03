"""Lines of the program read as Python, and rewritten for advice. A line that is not a whole statement gives nothing."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gradinspect.syntax import parse, parse_expression

_AUGMENTED = re.compile(r"([\w.]+) *([-+*/@%]|//|\*\*)= ")
_VIEWS = frozenset(("T", "H", "mT", "mH", "data", "real", "imag"))  # attributes that share the memory of their tensor
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)


class PartAssignment(NamedTuple):
    """An assignment to a part of a tensor: `h[mask] *= 0.1`."""

    target: str  # "h"
    selection: str  # "mask"
    sign: str | None  # "*", of an augmented one
    value: str

    @property
    def result(self) -> str:
        """What the part becomes, computed for the whole tensor."""
        return self.value if self.sign is None else f"{self.target} {self.sign} {self.value}"


def statements_of(code: str) -> list[ast.stmt]:
    """Parse a line of the program; nothing if it is only a part of a statement."""
    for text in (code, f"{code} pass"):
        try:
            return parse(text).body
        except (SyntaxError, ValueError):
            continue
    return []


def statement_of(code: str) -> ast.stmt | None:
    """Parse a line that has one statement."""
    found = statements_of(code)
    return found[0] if len(found) == 1 else None


def assigned_names(code: str) -> list[str]:
    """List the variables and attributes that a line assigns: `out, self.h = ...` has `out` and `self.h`."""
    found: list[str] = []
    for statement in statements_of(code):
        match statement:
            case ast.Assign(targets=targets):
                found += [name for target in targets for name in _names_in_target(target)]
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                found += _names_in_target(target)
    return found


def read_names(code: str) -> set[str]:
    """Collect the variables and dotted attributes that a line reads."""
    parts = [part for statement in statements_of(code) for part in ast.walk(statement)]
    read = {
        ast.unparse(part)
        for part in parts
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load)
    }
    return read | {ast.unparse(part.target) for part in parts if isinstance(part, ast.AugAssign)}


def with_detached(code: str, names: Sequence[str]) -> str | None:
    """Rewrite a line so that it reads some variables without their graph."""
    statement = statement_of(code)
    if statement is None or not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
        return None
    if isinstance(statement, ast.AugAssign):
        statement = _plain(statement)
    return ast.unparse(_Detaching(names).visit(statement))


def augmented(code: str) -> str | None:
    """Rewrite `y += 1` as `y = y + 1`; of a statement that goes on in the next line, as far as it is known."""
    statement = statement_of(code)
    begun = _AUGMENTED.match(code)
    if not statements_of(code) and begun is not None:
        return f"{begun[1]} = {begun[1]} {begun[2]} ..."
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name | ast.Attribute):
        return None
    return ast.unparse(_plain(statement))


def part_assignment(code: str) -> PartAssignment | None:
    """Read an assignment to a part of a tensor."""
    match statement_of(code):
        case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=value):
            sign = None
        case ast.AugAssign(target=ast.Subscript(value=target, slice=index), op=operator, value=value):
            sign = ast.unparse(ast.BinOp(ast.Name("a"), operator, ast.Name("b")))[2:-2]
        case _:
            return None
    if not isinstance(target, ast.Name | ast.Attribute):
        return None
    written = ast.unparse(value)
    if sign is not None and not isinstance(value, _SIMPLE):
        written = f"({written})"
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return PartAssignment(ast.unparse(target), ", ".join(map(ast.unparse, parts)), sign, written)


class SourceComparison(NamedTuple):
    """A comparison on a line: `p > 0.5`."""

    left: str
    comparison: str


def compared(code: str) -> SourceComparison | None:
    """Find the first comparison on a line."""
    for statement in statements_of(code):
        for part in ast.walk(statement):
            if isinstance(part, ast.Compare) and len(part.ops) == 1:
                left = ast.unparse(part.left)
                return SourceComparison(left if isinstance(part.left, _SIMPLE) else f"({left})", ast.unparse(part))
    return None


def is_loop_index(index: str) -> bool:
    """Return whether an index reads a plain variable by itself, as the counter of a loop: `t + 1`, but not `:, 0`."""
    tree = parse(f"x[{index}]").body[0]
    assert isinstance(tree, ast.Expr)  # noqa: S101  # as it was written above
    assert isinstance(tree.value, ast.Subscript)  # noqa: S101
    first = tree.value.slice.elts[0] if isinstance(tree.value.slice, ast.Tuple) else tree.value.slice
    return isinstance(first, ast.Name | ast.BinOp) and any(isinstance(part, ast.Name) for part in ast.walk(first))


def unchained(code: str, ops: Collection[str]) -> str | None:
    """Rewrite `y.sub_(a).div_(b)` as one statement for each operator, of which some make new tensors.

    Args:
        code: The line.
        ops: The operators that do: `sub_`.
    """
    statement = statement_of(code)
    calls: list[ast.Call] = []
    part = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
        calls.insert(0, part)
        part = part.func.value
    if len(calls) < 2 or not isinstance(part, ast.Name | ast.Attribute) or ast.unparse(part) != base_of(part):
        return None
    name, lines = ast.unparse(part), []
    for call in calls:
        assert isinstance(call.func, ast.Attribute)  # noqa: S101  # collected above
        op = call.func.attr
        call.func = ast.Attribute(part, op.removesuffix("_") if op in ops else op, ast.Load())
        lines.append(f"{name} = {ast.unparse(call)}" if op in ops else ast.unparse(call))
    return "; ".join(lines)


def out_of_place(code: str, op: str) -> str | None:
    """Rewrite a line that calls an operator in place so that it makes a new tensor.

    Args:
        code: The line.
        op: The operator: `clamp_`.
    """
    statement = statement_of(code)
    if statement is None:
        return None
    call = _call_of(statement, op)
    if call is None:
        return None
    receiver = _receiver(call)
    is_plain = isinstance(receiver, ast.Name | ast.Attribute) and ast.unparse(receiver) == base_of(receiver)
    _rename(call, op.rstrip("_"))
    call.keywords = [keyword for keyword in call.keywords if keyword.arg != "inplace"]
    if not isinstance(statement, ast.Expr):
        return ast.unparse(statement) if isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign) else None
    return f"{ast.unparse(receiver)} = {ast.unparse(statement)}" if receiver is not None and is_plain else None


def written_name(code: str, op: str) -> str | None:
    """Name the variable whose memory a line writes to: `h` in `h[0].view(-1).zero_()`."""
    part = part_assignment(code)
    if part is not None:
        return part.target
    statement = statement_of(code)
    if isinstance(statement, ast.AugAssign):
        return base_of(statement.target)
    call = None if statement is None else _call_of(statement, op)
    receiver = None if call is None else _receiver(call)
    return None if receiver is None else base_of(receiver)


def base_of(expression: ast.expr) -> str | None:
    """Return the variable or attribute whose memory an expression such as a view is part of."""
    while True:
        match expression:
            case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                expression = inner
            case ast.Attribute(value=inner, attr=name) if name in _VIEWS:
                expression = inner
            case ast.Name() | ast.Attribute():
                return ast.unparse(expression)
            case _:
                return None


class _Detaching(ast.NodeTransformer):
    """Detaches variables where they are read."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        """Wrap a read of one of the names, and look no further inside it."""
        is_read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        if is_read and isinstance(node, ast.expr) and ast.unparse(node) in self._names:
            return ast.Call(ast.Attribute(node, "detach", ast.Load()), [], [])
        return self.generic_visit(node)


def _names_in_target(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _names_in_target(element)
    elif isinstance(target, ast.Starred | ast.Subscript):
        yield from _names_in_target(target.value)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield ast.unparse(target)


def _plain(statement: ast.AugAssign) -> ast.Assign:
    read = parse_expression(ast.unparse(statement.target))
    return ast.Assign([statement.target], ast.BinOp(read, statement.op, statement.value), lineno=1)


def _call_of(statement: ast.stmt, op: str) -> ast.Call | None:
    """Find the call of an operator, or of a function that is told to work in place."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Call):
            name = _called(part)
            if name == op or (f"{name}_" == op and any(keyword.arg == "inplace" for keyword in part.keywords)):
                return part
    return None


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _receiver(call: ast.Call) -> ast.expr | None:
    """Return what a call writes to: `h` in `h.clamp_(0)` and in `torch.relu_(h)`."""
    if isinstance(call.func, ast.Attribute) and not _is_module(call.func.value):
        return call.func.value
    return call.args[0] if call.args else None


def _is_module(expression: ast.expr) -> bool:
    return ast.unparse(expression) in ("torch", "F", "nn", "nn.init", "init", "torch.nn.functional", "nn.functional")


def _rename(call: ast.Call, name: str) -> None:
    if isinstance(call.func, ast.Attribute):
        call.func.attr = name
    elif isinstance(call.func, ast.Name):
        call.func.id = name
