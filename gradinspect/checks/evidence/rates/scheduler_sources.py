"""What the source of a program says of its schedulers: what they are made with, and what step() is given."""

import ast
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from gradinspect.recording.source_structure import assignment_before, calls_at, calls_named, own_sources

_FALLING = frozenset((
    "loss", "losses", "err", "error", "errors", "mse", "mae", "rmse", "nll", "ppl", "perplexity", "criterion",
    "entropy", "wer", "cer",
))  # fmt: skip
_RISING = frozenset((
    "acc", "accuracy", "accuracies", "auc", "auroc", "f1", "iou", "miou", "dice", "precision", "recall", "bleu", "psnr",
    "ssim", "reward", "rewards",
))  # fmt: skip
_PASSING = frozenset(("float", "mean", "sum", "average", "item", "cpu", "detach", "numpy"))
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
    """Say from its name whether a number falls as training goes on, or rises; None if that says nothing."""
    found = _direction(_words(value))
    if found is None and isinstance(value, ast.Name | ast.Attribute):
        assigned = assignment_before(file, ast.unparse(value), value.lineno)
        return None if assigned is None or len(assigned.targets) != 1 else _direction(_words(assigned.value))
    return found


def _direction(words: set[str]) -> Literal["falls", "rises"] | None:
    if words & _FALLING:
        return "falls"
    return "rises" if words & _RISING else None


def _words(value: ast.expr) -> set[str]:
    return {word.lower() for name in _names(value) for word in _WORD.findall(name)}


def _names(value: ast.expr) -> Iterator[str]:
    """Yield the names that say what a number is: nothing of a difference or of what is negated."""
    match value:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(attr=name):
            yield name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            yield name
        case ast.Subscript(value=inner) | ast.BinOp(left=inner, op=ast.Div()):
            yield from _names(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _PASSING:
            yield from _names(inner)
        case ast.Call(func=function, args=[inner, *_]) if ast.unparse(function).rpartition(".")[2] in _PASSING:
            yield from _names(inner)
        case ast.Call(func=function):
            yield ast.unparse(function).rpartition(".")[2]
