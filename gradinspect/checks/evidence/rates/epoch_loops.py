"""The loop over epochs around a step: how often it runs, and in which pass it is.

It is the outermost `for ... in range(...)` of the program's own frames that another loop is inside of. What `range` is
given is read from variables, attributes and dicts; nothing of the program is called.
"""

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from gradinspect.recording.frames import line_at, user_frames
from gradinspect.recording.names.variables import local_variables
from gradinspect.recording.source_structure import enclosing


class EpochLoop(NamedTuple):
    """A loop over epochs."""

    file: str
    line: int
    num_passes: int
    current: int  # the pass when that was asked, from 1 on


def epoch_loop(frame: FrameType) -> EpochLoop | None:
    """Return the loop over epochs that a frame runs in; None if it is not known."""
    loops = [(one, user) for user in user_frames(frame) for one in _loops(user)]
    for loop, user in loops[:0:-1]:  # the outermost first, without the innermost
        start, stop = _range_of(loop.iter, user)
        value = _value(loop.target, user)
        if start is not None and stop is not None and value is not None:
            return EpochLoop(user.f_code.co_filename, loop.lineno, stop - start, value - start + 1)
    return None


def outer_passes(frame: FrameType) -> tuple[int, ...]:
    """Return what tells one pass of the loops around the innermost one from another: what their variables hold."""
    loops = [(one, user) for user in user_frames(frame) for one in _loops(user)]
    values = (
        _value_in(name.id, user)
        for loop, user in loops[1:]
        for name in ast.walk(loop.target)
        if isinstance(name, ast.Name)
    )
    return tuple(value if type(value) is int else id(value) for value in values)


def _loops(frame: FrameType) -> Iterator[ast.For]:
    """Yield the loops around the line that a frame runs, the innermost first, within its function."""
    for one in enclosing(frame.f_code.co_filename, line_at(frame)):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(one, ast.For):
            yield one


def _range_of(node: ast.expr, frame: FrameType) -> tuple[int | None, int | None]:
    """Return where a range begins and ends."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[stop], keywords=[]):
            return 0, _value(stop, frame)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
            return _value(start, frame), _value(stop, frame)
        case ast.Call(func=ast.Name(id="tqdm" | "trange"), args=[inner, *_]):
            return _range_of(inner, frame)
    return None, None


def _value(node: ast.expr, frame: FrameType) -> int | None:
    """Return the whole number that an expression has."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = _value(node.left, frame), _value(node.right, frame)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    found = _object(node, frame)
    return found if type(found) is int else None


def _object(node: ast.expr, frame: FrameType) -> Any:
    """Return what a name, an attribute or an entry of a dict is."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _value_in(name, frame)
        case ast.Attribute(value=inner, attr=name):
            return _attributes(_object(inner, frame)).get(name)
        case ast.Subscript(value=inner, slice=ast.Constant(value=str(key))):
            found = _object(inner, frame)
            return found.get(key) if type(found) is dict else None
    return None


def _value_in(name: str, frame: FrameType) -> Any:
    return local_variables(frame).get(name, frame.f_globals.get(name))


def _attributes(owner: object) -> dict[str, Any]:
    """Return the attributes of an object itself; of its class, what a dataclass or a config class has."""
    own = _dict_of(owner)
    kind = owner if isinstance(owner, type) else type(owner)
    return {**type.__getattribute__(kind, "__dict__"), **own}


def _dict_of(owner: object) -> dict[str, Any]:
    try:
        found = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}
