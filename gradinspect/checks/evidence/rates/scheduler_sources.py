"""What the source of a program says of its schedulers: what they are made with, and what step() is given."""

import ast
import re
from typing import Literal, NamedTuple

from gradinspect.recording.source_structure import (
    assignment_before,
    assignments_of,
    calls_at,
    calls_named,
    function_or_file,
    own_sources,
    whole_tree,
)

_FALLING = frozenset((
    "loss", "losses", "err", "error", "errors", "mse", "mae", "rmse", "nll", "ppl", "perplexity", "criterion",
    "entropy", "wer", "cer",
))  # fmt: skip
_RISING = frozenset((
    "acc", "accuracy", "accuracies", "auc", "auroc", "f1", "iou", "miou", "dice", "precision", "recall", "bleu", "psnr",
    "ssim", "reward", "rewards", "correct", "hits",
))  # fmt: skip
_PASSING = frozenset(("float", "mean", "sum", "average", "item", "cpu", "detach", "numpy"))
_MOST_STEPS = 5  # from a number to what it is made of
_WORD = re.compile(r"[A-Z]?[a-z]+\d?|[A-Z]+(?![a-z])")


class MadeScheduler(NamedTuple):
    """A line that makes a scheduler."""

    file: str
    call: ast.Call
    name: str  # the class

    def argument(self, place: int, name: str) -> ast.expr | None:
        """Return one of its arguments."""
        found = next((one.value for one in self.call.keywords if one.arg == name), None)
        args = self.call.args
        return found or (args[place] if len(args) > place and not isinstance(args[place], ast.Starred) else None)

    def has(self, name: str) -> bool:
        """Return whether an argument is given by its name."""
        return any(one.arg == name for one in self.call.keywords)

    def meaning(self, value: ast.expr) -> str:
        """Write an argument; what is assigned to a variable, if it is one."""
        assigned = assignment_before(self.file, ast.unparse(value), value.lineno)
        return ast.unparse(value if assigned is None else assigned.value)


def made_scheduler(name: str) -> MadeScheduler | None:
    """Return the only line of the program that makes a scheduler of a class."""
    found = [MadeScheduler(file, call, name) for file in own_sources(name) for call in calls_named(file, name)]
    return found[0] if len(found) == 1 else None


def numbers_of_loops(file: str) -> set[str]:
    """Write what the loops of a file count to: `epochs` of `range(epochs)`, and of `range(1, epochs + 1)`."""
    found = set[str]()
    for call in calls_named(file, "range"):
        for part in call.args:
            found.add(ast.unparse(part))
            if isinstance(part, ast.BinOp) and isinstance(part.right, ast.Constant):
                found.add(ast.unparse(part.left))
    return found


def told_at(file: str, line: int) -> ast.expr | None:
    """Return what the only call of step() on a line is given."""
    given = [call.args[0] if call.args else call.keywords[0].value
             for call in calls_at(file, "step", line) if call.args or call.keywords]  # fmt: skip
    return given[0] if len(given) == 1 else None


def direction(file: str, value: ast.expr) -> Literal["falls", "rises"] | None:
    """Say from its name, or from what it is made of, whether a number falls as training goes on, or rises.

    None if neither says anything.
    """
    part = _part(value)
    for _ in range(_MOST_STEPS):
        if part is None:
            return None
        found = _direction({word.lower() for word in _WORD.findall(_name(part))})
        if found is not None:
            return found
        part = _part(_made_of(file, part))
    return None


def _direction(words: set[str]) -> Literal["falls", "rises"] | None:
    if words & _FALLING:
        return "falls"
    return "rises" if words & _RISING else None


def _part(value: ast.expr | None) -> ast.expr | None:
    """Return the part of an expression that says what a number is: nothing of a difference or of what is negated."""
    match value:
        case ast.Name() | ast.Attribute() | ast.Subscript(slice=ast.Constant(value=str())):
            return value
        case ast.Subscript(value=inner) | ast.BinOp(left=inner, op=ast.Div()):
            return _part(inner)
        case ast.BinOp(left=inner, op=ast.Mult(), right=ast.Call() | ast.Subscript()):  # by the size of a batch
            return _part(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _PASSING:
            return _part(inner)
        case ast.Call(func=function, args=[inner, *_]) if _name(function) in _PASSING:
            return _part(inner)
        case ast.Call():
            return value
    return None


def _name(part: ast.expr) -> str:
    match part:
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=function):
            return _name(function)
    return ast.unparse(part).rpartition(".")[2]


def _made_of(file: str, part: ast.expr) -> ast.expr | None:
    """Return what a variable is assigned, or what is added to it; of a call, its object or what it returns."""
    if not isinstance(part, ast.Call):
        return _assigned(file, part)
    made = _assigned(file, part.func)
    functions = [one for one in ast.walk(whole_tree(file)) if isinstance(one, ast.FunctionDef)]
    called = [one for one in functions if one.name == _name(part)]
    returned = [one.value for one in ast.walk(called[0]) if isinstance(one, ast.Return)] if len(called) == 1 else []
    return made or (returned[0] if len(returned) == 1 else None)


def _assigned(file: str, variable: ast.expr) -> ast.expr | None:
    """Return the only value that a variable is assigned; if it begins with a number, what is added to that."""
    name = ast.unparse(variable)
    one = assignment_before(file, name, variable.lineno)
    everywhere = list(assignments_of(file, name))
    if one is None and len(everywhere) == 1 and everywhere[0].col_offset == 0:  # of the module
        one = everywhere[0]
    if one is None or len(one.targets) != 1 or isinstance(one.targets[0], ast.Tuple | ast.List):
        return None
    if not isinstance(one.value, ast.Constant):
        return one.value
    inside = ast.walk(function_or_file(file, variable.lineno))
    added = [part for part in inside if isinstance(part, ast.AugAssign) and ast.unparse(part.target) == name]
    return added[0].value if len(added) == 1 and isinstance(added[0].op, ast.Add) else None
