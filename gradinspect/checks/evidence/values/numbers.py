"""Numbers that a program took out of tensors with a graph, and that come back as a term of a loss.

NOTE [Where a number came from]
`loss + 0.01 * penalty` does not say what penalty is, if it is a number of Python: torch is given the product. So the
statement is read: what is added there and is a number, the variables of it that are numbers then, the statements of the
function that assign them, and so on. If one of these took a number out of a tensor that depends on what learns, then
that is where the gradient ended. A number that is written out, or comes from elsewhere, is a constant on purpose.
"""

import ast
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from types import CodeType, FrameType
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read
from gradinspect.recording.names.variables import own_variables
from gradinspect.recording.source_structure import contains, enclosing, first_line, last_line
from gradinspect.recording.transparency.own_errors import PassOver
from gradinspect.torch_api.patching.classes import is_one_of

_ADDS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub"))
_PRODUCTS = frozenset(("mul", "rmul", "imul"))
_SCALAR = _ADDS | _PRODUCTS | frozenset(("div", "truediv", "true_divide", "neg", "float", "to"))
_OF_NUMBERS = _SCALAR | frozenset(("mean", "sum", "squeeze", "unsqueeze", "view", "reshape", "getitem"))
_MAKERS = frozenset(("tensor", "as_tensor", "asarray", "full", "scalar_tensor", "from_numpy"))
# the functions that may be given a number as a term, or make a tensor of one
READERS = frozenset((
    *(f"torch.{name}" for name in ("tensor", "as_tensor", "asarray", "full", "scalar_tensor", "from_numpy")),
    *(f"torch.Tensor.{name}" for name in ("add", "sub", "__radd__", "__rsub__", "__iadd__", "__isub__")),
    "torch.Tensor.add_", "torch.Tensor.sub_",
    "torch.add", "torch.sub", "torch.rsub",
))  # fmt: skip
_NUMERIC_CALLS = frozenset(("float", "sum", "max", "min", "abs", "round"))
_TAKING = frozenset(("item", "tolist", "numpy", "float"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GROWS = frozenset(("append", "extend", "insert"))
_CUTS: frozenset[str | None] = frozenset((None, "detach", "data"))
MAX_EXITS = 200  # lines that are looked at


class NumberTerm(NamedTuple):
    """A term of a loss that is a number, or a tensor made of numbers."""

    made: int  # the call that was given the number
    used: int  # the sum


Chain = Sequence[tuple[CodeType, int]]  # a line and those that called its function


def numeric_names(frame: FrameType | None) -> frozenset[str]:
    """Collect the variables of a function that are numbers, or lists and arrays of them."""
    return frozenset(
        () if frame is None else (name for name, value in list(own_variables(frame).items()) if _is_numeric(value))
    )


def _is_numeric(value: object) -> bool:
    kind = type(value)
    if is_one_of(value, (list, tuple)):
        return bool(value) and type(next(iter(value))) is float  # type: ignore[call-overload]  # by its type
    numpy = sys.modules.get("numpy")
    return kind is float or (numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)))


def number_terms(calls: Sequence[Call], root: Read) -> Iterator[NumberTerm]:
    """Walk back from a scalar loss over what is added up in it, and yield what has no tensor behind it."""
    todo, seen = [root.call] if root.leads_back else [], {OUTSIDE}
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        call = calls[number]
        plain = call.name.strip("_")
        live = [read for read in call.reads if read.is_live]
        if plain not in _SCALAR or (plain in _PRODUCTS and len(live) > 1):
            continue
        todo += [read.call for read in live if read.leads_back]
        if plain in _ADDS:
            if len(call.reads) == 1:
                yield NumberTerm(number, number)
            yield from (NumberTerm(made, number) for read in call.reads if (made := _made_of_number(calls, read)) >= 0)


def _made_of_number(calls: Sequence[Call], read: Read) -> int:
    """Return the call that made a tensor of numbers, perhaps scaled since then."""
    while not read.is_live and read.call != OUTSIDE:
        call = calls[read.call]
        if call.name in _MAKERS and not call.reads:
            return read.call
        if call.name.strip("_") not in _OF_NUMBERS or len(call.reads) != 1:
            break
        (read,) = call.reads
    return OUTSIDE


def number_exits(calls: Sequence[Call], pass_over: PassOver) -> dict[int, int]:
    """Return the calls that took numbers out of tensors with a graph, or detached from one: the last, by frame.

    Args:
        calls: In the order in which they were made.
        pass_over: Counts the lines that are not looked at.
    """
    found: dict[int, int] = {}
    for number, call in enumerate(calls):
        if call.cause == "python" and call.frame is not None and _had_graph(calls, call):
            is_new = call.frame not in found or any(read.is_live for read in call.reads)
            found[call.frame] = number if is_new else found[call.frame]
    if len(found) > MAX_EXITS:
        pass_over("line with a number taken out of a tensor", f"before the last {MAX_EXITS}", len(found) - MAX_EXITS)
    return dict(list(found.items())[-MAX_EXITS:])


def _had_graph(calls: Sequence[Call], call: Call) -> bool:
    """Return whether a call read what had a graph until it was detached on its way there."""
    todo, seen = list(call.reads), {OUTSIDE}
    while todo:
        read = todo.pop()
        if read.is_live:
            return True
        if read.call not in seen and calls[read.call].cause in _CUTS:
            seen.add(read.call)
            todo += calls[read.call].reads
    return False


def exit_of_number(
    used: Chain, names: Collection[str], exits: Mapping[int, int], chain_of: Callable[[int], Chain]
) -> int | None:
    """Find the call that took a number out of a tensor. NOTE [Where a number came from].

    Args:
        used: The line that adds the number or makes a tensor of it.
        names: The variables that were numbers then.
        exits: What took numbers out of tensors, by their frames.
        chain_of: The lines of such a frame.
    """
    code, line = used[0]
    around = enclosing(code.co_filename, line)
    statement = next((one for one in around if isinstance(one, ast.stmt)), None)
    if statement is None or isinstance(statement, _FUNCTIONS):
        return None
    operands = list(_operands(statement, names))
    scope = next((one for one in around if isinstance(one, _FUNCTIONS)), around[-1])
    statements = list(_sources(scope, {name for one in operands for name in _names(one)} & set(names), names))
    taking = [one for one in operands if _takes(one)]
    for frame, call in exits.items():
        for place, at in chain_of(frame):
            if place is code and (_is_in(statements, at) or (taking and _is_in(taking, at))):
                return call
    return None if operands else _exit_in_function(statement, code, exits, chain_of)


def _operands(statement: ast.stmt, names: Collection[str]) -> Iterator[ast.expr]:
    """Yield what a statement adds or makes a tensor of, and is a number."""
    parts = [part for part in ast.walk(statement) if not isinstance(part, ast.stmt) or part is statement]
    for part in parts:
        match part:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                yield from (one for one in (left, right) if _is_number(one, names))
            case ast.AugAssign(op=ast.Add() | ast.Sub(), value=value) if _is_number(value, names):
                yield value
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[*_, value]) if name in _MAKERS:
                yield value


def _is_number(part: ast.expr, names: Collection[str]) -> bool:
    match part:
        case ast.Constant():
            return True
        case ast.Name(name):
            return name in names
        case ast.UnaryOp(operand=one) | ast.Subscript(value=one):
            return _is_number(one, names)
        case ast.BinOp(left=left, right=right):
            return _is_number(left, names) and _is_number(right, names)
        case ast.Call(func=ast.Attribute(attr="item")):
            return True
        case ast.Call(func=ast.Name(name)):
            return name in _NUMERIC_CALLS
    return False


def _takes(part: ast.expr) -> bool:
    """Return whether an expression takes numbers out of tensors itself."""
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Name | ast.Attribute) and _last_name(one.func) in _TAKING
        for one in ast.walk(part)
    )


def _last_name(func: ast.Name | ast.Attribute) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr


def _names(part: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}


def _sources(scope: ast.AST, wanted: set[str], names: Collection[str]) -> Iterator[ast.stmt]:
    """Yield the statements of a function that assign some numbers, and those that these were computed from."""
    todo, seen = list(wanted), set(wanted)
    assigning = [(one, target) for one in ast.walk(scope) if isinstance(one, ast.stmt) for target in _targets(one)]
    while todo:
        name = todo.pop()
        for statement, target in assigning:
            if target == name:
                yield statement
                new = (_names(statement) & set(names)) - seen
                seen |= new
                todo += new


def _targets(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            parts: list[ast.expr] = targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            parts = [target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(name), attr=attr))) if attr in _GROWS:
            yield name
            return
        case _:
            return
    for part in parts:
        yield from (one.id for one in ast.walk(part) if isinstance(one, ast.Name))


def _is_in(parts: Sequence[ast.AST], line: int) -> bool:
    return any(first_line(one) <= line <= last_line(one) for one in parts)


def _exit_in_function(
    statement: ast.stmt, code: CodeType, exits: Mapping[int, int], chain_of: Callable[[int], Chain]
) -> int | None:
    """Find the exit in the function whose result is added, if that of no other one may be the number."""
    sums = [one for one in ast.walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add | ast.Sub)]
    called = {_called(part) for one in sums for part in (one.left, one.right)} - {""}
    found: dict[str, int] = {}
    for frame, call in exits.items():
        chain = list(chain_of(frame))
        for (inner, _), (outer, line) in pairwise(chain):
            if outer is code and contains(statement, line) and inner.co_name in called:
                found[inner.co_name] = call
    return next(iter(found.values())) if len(found) == 1 and len(sums) == 1 else None


def _called(part: ast.expr) -> str:
    """Return the function whose result, perhaps scaled, an operand is."""
    match part:
        case ast.BinOp(left=ast.Constant(), right=one) | ast.BinOp(left=one, right=ast.Constant()):
            return _called(one)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return ""
