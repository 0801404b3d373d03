"""What surrounds a line in its source file: the scopes and decisions that it is inside of, read from its syntax.

Files are read through linecache, as tracebacks read them; a file that is not there, or is not Python, gives nothing.
"""

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from gradinspect.recording.frames import is_own_file
from gradinspect.recording.source_text import lines_of
from gradinspect.syntax import parse

MAX_FILES = 32  # that are kept
_OVER_TENSORS = ("parameters(", "buffers(", "state_dict(")


def enclosing(file: str, line: int) -> list[ast.AST]:
    """List the statements and expressions that a line is part of, the innermost first."""
    tree = _tree(file)
    found: list[ast.AST] = []
    todo: list[ast.AST] = [] if tree is None else [tree]
    while todo:
        inside = [part for parent in todo for part in ast.iter_child_nodes(parent) if contains(part, line)]
        found += inside
        todo = inside
    return found[::-1]


def whole_tree(file: str) -> ast.AST:
    """Return all of a file; a module without statements if it is not Python."""
    tree: ast.AST = _tree(file) or ast.Module([], [])
    return tree


def function_or_file(file: str, line: int) -> ast.AST:
    """Return the function that a line is in, or else all of its file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next((one for one in enclosing(file, line) if isinstance(one, kinds)), whole_tree(file))


def first_line(node: ast.AST) -> int:
    """Return the line on which a statement begins, with its decorators."""
    lines: list[int] = [getattr(node, "lineno", 0), *(part.lineno for part in getattr(node, "decorator_list", ()))]
    return min(lines)


_HAS_GRAD = ("torch", "autograd", "func")  # the function `grad`


def last_line(node: ast.AST) -> int:
    """Return the line on which a statement ends."""
    end: int | None = getattr(node, "end_lineno", None)
    return first_line(node) if end is None else end


def calls_in(node: ast.AST) -> Iterator[str]:
    """Write what is called inside a statement: `random.random`, `cache.append`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield ast.unparse(part.func)


def own_sources(text: str) -> Iterator[str]:
    """Yield the files of the program's own modules that contain some text, the script first."""
    loaded = list(sys.modules.values())  # another thread may import
    modules = [sys.modules.get("__main__"), *loaded]
    files = (vars(module).get("__file__") for module in modules if isinstance(module, ModuleType))
    for file in dict.fromkeys(file for file in files if isinstance(file, str)):
        if is_own_file(file) and any(text in line for line in lines_of(file)):
            yield file


def calls_of(file: str, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a method in a file."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def calls_named(file: str, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function in a file, by the last part of its name."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            yield node


def calls_at(file: str, name: str, line: int) -> Iterator[Any]:
    """Yield the calls of a method on a line."""
    yield from (call for call in calls_of(file, name) if contains(call, line))


def assignments_of(file: str, name: str) -> Iterator[ast.Assign]:
    """Yield the statements that assign a variable or an attribute, by its text: `self.target`."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets):
            yield node


def gradient_reads(file: str) -> Iterator[ast.AST]:
    """Yield what reads gradients in a file: `weight.grad`, a call of `clip_grad_norm_`; not `torch.autograd.grad`."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
            if ast.unparse(node.value).rpartition(".")[2] not in _HAS_GRAD:
                yield node
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].startswith("clip_grad"):
            yield node


def state_line(file: str, key: str) -> int | None:
    """Return the first line that assigns what is kept under a key, as `state["momentum"] = grad` does."""
    for node in ast.walk(whole_tree(file)):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Subscript(slice=ast.Constant(value=name)) if name == key:
                    return target.lineno
    return None


def assignment_before(file: str, name: str, line: int) -> ast.Assign | None:
    """Return what assigns a variable before a line of the same function reads it, or an attribute in its class.

    None if there is none: it is an argument.
    """
    around = enclosing(file, line)
    function, whole = (
        next((one for one in around if isinstance(one, kind)), None) for kind in (ast.FunctionDef, ast.ClassDef)
    )
    found = sorted(assignments_of(file, name), key=first_line)
    before = [one for one in found if one.lineno < line and (function is None or contains(function, one.lineno))]
    inside = [one for one in found if "." in name and whole is not None and contains(whole, one.lineno)]
    return before[-1] if before else next(iter(inside), None)


def first_read(file: str, name: str, after: int, before: int) -> int | None:
    """Return the first line between two others that reads a variable of the function around the second one."""
    inside = function_or_file(file, before)
    lines = [
        one.lineno
        for one in ast.walk(inside)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    return min((line for line in lines if after < line < before), default=None)


def forgotten_assignments(file: str) -> Iterator[tuple[str, ast.Assign]]:
    """Yield where a loop over parameters computes its own variable anew, and nothing reads that, with its name.

    What a function writes in place, as `p = p.mul_(2)`, is no such assignment.
    """
    for loop in ast.walk(whole_tree(file)):
        if isinstance(loop, ast.For) and any(text in ast.unparse(loop.iter) for text in _OVER_TENSORS):
            names = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
            for node in _outside_of_loops(loop.body):
                match node:
                    case ast.Assign(targets=[ast.Name(name)], value=value) if name in names:
                        is_read = any(_reads(later, name) for later in _after(file, node))
                        if _reads(value, name) and not is_read and not _writes_in_place(value):
                            yield name, node


def _outside_of_loops(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a loop that run once in each iteration."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With):
            yield from _outside_of_loops([*statement.body, *getattr(statement, "orelse", ())])


def _after(file: str, node: ast.stmt) -> Iterator[ast.AST]:
    """Yield what comes after a statement in its function."""
    around = enclosing(file, node.lineno)
    scope = next((one for one in around if isinstance(one, ast.FunctionDef)), _tree(file))
    yield from (part for part in ast.walk(scope) if getattr(part, "lineno", 0) > last_line(node))


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in ast.walk(node))


def _writes_in_place(value: ast.expr) -> bool:
    return any(call.rstrip("_") != call for call in calls_in(value))


def makers_of(file: str, name: str) -> Iterator[int]:
    """Yield the lines of a file that call a class by its name: `nn.LayerNorm(1)`, `LayerNorm(1)`."""
    for node in ast.walk(whole_tree(file)):
        match node:
            case ast.Call(func=ast.Attribute(attr=found) | ast.Name(id=found)) if found == name:
                yield node.lineno


def lines_that_only_name(file: str, name: str) -> Iterator[int]:
    """Yield the lines of a file that name a method and do not call it: `optimizer.step`."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == name:
            yield node.lineno


def attribute_writes(file: str, name: str) -> Iterator[tuple[ast.expr, list[ast.AST]]]:
    """Yield what an attribute is set of in a file, and what is around it, the innermost first, in order of lines."""
    written = [target for node in ast.walk(whole_tree(file)) for target in _written(node, name)]
    for target in sorted(written, key=lambda target: target.lineno):
        yield target, enclosing(file, target.lineno)


def attribute_reads(file: str, name: str) -> Iterator[str]:
    """Write what an attribute is read of in a file: `self`."""
    for node in ast.walk(whole_tree(file)):
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
            yield ast.unparse(node.value)


def _written(node: ast.AST, name: str) -> list[ast.expr]:
    """Return what an attribute is set of, by an assignment or by setattr()."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Store()) if attr == name:
            return [node.value]
        case ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=attr), _]) if attr == name:
            return [target]
    return []


def spared_names(file: str, line: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the names by which a loop over parameters spares some of what it freezes on a line.

    Each with its test: `in`, `startswith` or `endswith`. Of several names in one tuple, one is enough for the loop.
    """
    around = enclosing(file, line)
    loop = next((one for one in around if isinstance(one, ast.For)), None)
    if loop is None or "named_parameters" not in ast.unparse(loop.iter):
        return
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and contains(node, line):
            is_then = any(contains(one, line) for one in node.body)
            yield from _texts_of(node.test, is_wanted=not is_then)
        elif isinstance(node, ast.If) and any(isinstance(one, ast.Continue) for one in node.body):
            yield from _texts_of(node.test, is_wanted=True)
        elif isinstance(node, ast.Assign) and contains(node, line):
            yield from _texts_of(node.value, is_wanted=True)
        elif (
            isinstance(node, ast.Call)
            and contains(node, line)
            and node.args
            and "requires_grad" in ast.unparse(node.func)
        ):
            yield from _texts_of(node.args[0], is_wanted=True)


def _texts_of(test: ast.expr, *, is_wanted: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield what a condition asks of a name where it holds, or where it does not."""
    match test:
        case ast.BoolOp():
            for value in test.values:
                yield from _texts_of(value, is_wanted=is_wanted)
        case ast.UnaryOp(op=ast.Not()):
            yield from _texts_of(test.operand, is_wanted=not is_wanted)
        case ast.Compare(left=text, ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Name()]):
            if isinstance(op, ast.In) == is_wanted and _constants(text):
                yield "in", _constants(text)
        case ast.Call() if is_wanted:
            yield from _texts_of_call(test)


def _texts_of_call(call: ast.Call) -> Iterator[tuple[str, list[str]]]:
    """Yield the same for `name.startswith("a")` and `any(one in name for one in ("a", "b"))`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="startswith" | "endswith" as attr), args=[given]):
            test: str = attr
        case ast.Call(
            func=ast.Name(id="any"),
            args=[ast.GeneratorExp(elt=ast.Compare(ops=[ast.In()]), generators=[ast.comprehension(iter=given)])],
        ):
            test = "in"
        case _:
            return
    if _constants(given):
        yield test, _constants(given)


def _constants(node: ast.expr) -> list[str]:
    """Return the texts that an expression writes out; none if one of them is computed."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [part.value if isinstance(part, ast.Constant) else None for part in parts]
    return [value for value in values if isinstance(value, str)] if None not in values else []


@lru_cache(maxsize=MAX_FILES)
def _tree(file: str) -> Any:
    try:
        return parse("".join(lines_of(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def contains(node: ast.AST, line: int) -> bool:
    """Return whether a line is part of a statement, an expression or a case."""
    if isinstance(node, ast.match_case):  # which does not know its lines
        return first_line(node.pattern) <= line <= last_line(node.body[-1])
    return hasattr(node, "lineno") and first_line(node) <= line <= last_line(node)
