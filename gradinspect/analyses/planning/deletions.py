"""Where a variable can be deleted: after the last line that reads it, if nothing ever misses it. Imports no torch.

What comes in: source text, a line that runs while the variable is held, and its name. What goes out: the statement
after which `del` can be written, or None; and a syntax tree with such statements in it.

NOTE [What a deleted variable could break]
Something else that reads it: a function whose global it is, a closure, `locals()`. The lines after the loop. A later
iteration, if it reads the variable before it sets it, or sets it in some cases only. So the iteration of the innermost
loop around the line must set the variable, whatever happens, before anything in it reads it, and nothing else that runs
later may read it.
"""

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from gradinspect.syntax import parse

_READS_ALL = frozenset(("locals", "globals", "vars", "dir"))  # without arguments
_RUNS_TEXT = frozenset(("eval", "exec"))
_AT_ONCE = frozenset(("listcomp", "dictcomp", "setcomp"))  # scopes of their own before Python 3.12
_Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_Block: TypeAlias = list[ast.stmt]


class Spot(NamedTuple):
    """The end of a statement."""

    line: int
    indent: int


class _Step(NamedTuple):
    """One block on the way from a scope to a line, and the statement of it that the line is in."""

    block: _Block
    statement: ast.stmt


def deletable_after(source: str, line: int, name: str) -> Spot | None:
    """Find the statement after which a variable can be deleted; None if there is none.

    Args:
        source: Of the file.
        line: A line that runs while the variable is held.
        name: Of the variable, in the scope of the line.
    """
    try:
        tree, table = parse(source), symtable.symtable(source, "<plan>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return None
    scope = _scope_at(tree, line)
    way = _way_to(scope.body, line)
    if not way or _is_read_elsewhere(tree, scope, _table_of(table, scope), name):
        return None
    depth, loop = _innermost_loop(way)
    inside = way[depth + 1 :]
    if loop is not None and _is_missed_outside(scope, loop, name):
        return None
    is_given = bool(_names(loop.target, name)) if isinstance(loop, ast.For | ast.AsyncFor) else False
    is_given = is_given or (loop is None and name in _parameters(scope))
    return _after_last_use(inside, name) if is_given or _is_set_first(inside, name) else None


def with_deletions(tree: ast.Module, deletions: Iterable[tuple[Spot, str]]) -> ast.Module:
    """Write `del` after the statements that end at some spots."""
    wanted = list(deletions)
    for block in list(_blocks_in(tree)):
        for number in range(len(block) - 1, -1, -1):
            statement = block[number]
            for spot, name in wanted:
                if spot == _end_of(statement):
                    deletion = ast.Delete(targets=[ast.Name(id=name, ctx=ast.Del())])
                    block.insert(number + 1, ast.fix_missing_locations(ast.copy_location(deletion, statement)))
    return tree


def _end_of(statement: ast.stmt) -> Spot:
    return Spot(statement.end_lineno or statement.lineno, statement.col_offset)


def _contains(node: ast.AST, line: int) -> bool:
    first = _first_line(node)
    return first is not None and first <= line <= (getattr(node, "end_lineno", None) or first)


def _first_line(node: ast.AST) -> int | None:
    """Return where a node begins, decorators included; None if it has no place."""
    first: int | None = getattr(node, "lineno", None)
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else first


def _scope_at(tree: ast.Module, line: int) -> _Scope:
    """Find the innermost function around a line; functions without a name of their own are part of their scope."""
    inside = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and
        node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]  # fmt: skip
    return max(inside, key=lambda node: node.lineno, default=tree)


def _table_of(table: symtable.SymbolTable, scope: _Scope) -> symtable.SymbolTable | None:
    """Find the symbols of a scope."""
    if isinstance(scope, ast.Module):
        return table
    lines = {scope.lineno, *(decorator.lineno for decorator in scope.decorator_list)}
    return next((one for one in _tables(table) if one.get_name() == scope.name and one.get_lineno() in lines), None)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _tables(child)


def _blocks_of(statement: ast.AST) -> Iterator[_Block]:
    """Yield the blocks of a statement: its body, its other branches."""
    for _, value in ast.iter_fields(statement):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], ast.ExceptHandler | ast.match_case):
            yield from (part.body for part in value)


def _blocks_in(tree: ast.AST) -> Iterator[_Block]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler | ast.match_case):
            yield from _blocks_of(node)


def _way_to(block: _Block, line: int) -> list[_Step]:
    """List the blocks around a line, the outermost first."""
    way = []
    current: _Block | None = block
    while current is not None:
        statement = next((one for one in current if _contains(one, line)), None)
        if statement is None:
            break
        way.append(_Step(current, statement))
        if isinstance(statement, ast.ClassDef):
            break
        current = next((one for one in _blocks_of(statement) if any(_contains(each, line) for each in one)), None)
    return way


def _innermost_loop(way: Sequence[_Step]) -> tuple[int, _Loop | None]:
    """Find the innermost loop whose body the line is in, and its place on the way."""
    for depth in range(len(way) - 2, -1, -1):
        statement = way[depth].statement
        if isinstance(statement, ast.For | ast.AsyncFor | ast.While) and way[depth + 1].block is statement.body:
            return depth, statement
    return -1, None


def _names(node: ast.AST, name: str) -> list[ast.Name]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name]


def _reads(node: ast.AST, name: str) -> list[ast.Name]:
    """List where a variable is read: `x += 1` reads it too."""
    added = {
        id(one.target) for one in ast.walk(node) if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
    }
    return [one for one in _names(node, name) if isinstance(one.ctx, ast.Load) or id(one) in added]


def _is_read_elsewhere(tree: ast.Module, scope: _Scope, table: symtable.SymbolTable | None, name: str) -> bool:
    """Return whether something outside the lines of a scope may read its variable, or deletes it already."""
    if table is None or any(isinstance(one.ctx, ast.Del) for one in _names(scope, name)):
        return True
    is_module = isinstance(scope, ast.Module)
    if not is_module and not (name in table.get_identifiers() and table.lookup(name).is_local()):
        return True
    for inner in _tables(table):
        if inner.get_name() not in _AT_ONCE and name in inner.get_identifiers():
            symbol = inner.lookup(name)
            if symbol.is_global() if is_module else symbol.is_free():
                return True
    calls = [
        one for one in ast.walk(tree if is_module else scope) if isinstance(one, ast.Call) and
        isinstance(one.func, ast.Name)
    ]  # fmt: skip
    called = {one.func.id for one in calls if isinstance(one.func, ast.Name) and not one.args}
    return bool(called & _READS_ALL) or any(
        isinstance(one.func, ast.Name) and one.func.id in _RUNS_TEXT for one in calls
    )


def _is_missed_outside(scope: _Scope, loop: _Loop, name: str) -> bool:
    """Return whether a variable may be read outside the body of a loop, once an iteration has deleted it."""
    inside = {id(one) for statement in loop.body for one in ast.walk(statement)}
    around = [
        one for one in ast.walk(scope) if isinstance(one, ast.For | ast.AsyncFor | ast.While) and one is not loop and
        _contains(one, loop.lineno)
    ]  # fmt: skip
    for read in _reads(scope, name):
        if id(read) in inside:
            continue
        if read.lineno > loop.lineno or any(_contains(outer, read.lineno) for outer in around):
            return True
        if isinstance(loop, ast.While) and _contains(loop.test, read.lineno):
            return True
    return False


def _parameters(scope: _Scope) -> set[str]:
    if isinstance(scope, ast.Module):
        return set()
    given = scope.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _is_set_first(way: Sequence[_Step], name: str) -> bool:
    """Return whether a block sets a variable, whatever happens, before it reads it."""
    on_the_way = {id(step.statement): way[depth + 1].block for depth, step in enumerate(way[:-1])}
    for statement in _always_run(way[0].block, on_the_way):
        if _reads(statement, name):
            return False
        if _names(statement, name):
            return isinstance(statement, ast.Assign | ast.AnnAssign)
    return False


def _always_run(block: _Block, on_the_way: dict[int, _Block]) -> Iterator[ast.AST]:
    """Yield what runs whenever the line does, in its order: statements, and the first lines of those with blocks."""
    for statement in block:
        inner = statement.body if isinstance(statement, ast.With | ast.AsyncWith) else on_the_way.get(id(statement))
        if inner is None:
            yield statement
            continue
        yield from (
            part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt | ast.ExceptHandler)
        )
        yield from _always_run(inner, on_the_way)


def _after_last_use(way: Sequence[_Step], name: str) -> Spot | None:
    """Find the statement with the last use of a variable, as far inside as the line is."""
    uses = [one for statement in way[0].block for one in _names(statement, name)]
    last = max(uses, key=lambda one: (one.lineno, one.col_offset), default=None)
    if last is None:
        return None
    for depth, step in enumerate(way):
        statement = [one for one in step.block if (_first_line(one) or 0) <= last.lineno][-1]  # several may share it
        inner = way[depth + 1].block if depth + 1 < len(way) and statement is step.statement else []
        if not any(_contains(one, last.lineno) for one in inner):
            ends = isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)
            return None if ends else _end_of(statement)
    return None
