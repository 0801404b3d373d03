"""Set names in a script to other numbers: `batch_size = 16`, `DataLoader(data, batch_size=16)`. Imports no torch.

What comes in: source text. What goes out: the numbers it has, or its syntax tree with others in their places; lines and
columns stay what they are.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from gradinspect.syntax import parse


def numbers_in(source: str | bytes) -> dict[str, list[int]]:
    """Find the names that a script gives whole numbers: variables, arguments, and options of its command line."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, constant in _constants(parse(source)):
        found[name].append(int(constant.value))  # type: ignore[arg-type]  # as was checked
    return dict(found)


def with_numbers(source: str | bytes, numbers: Mapping[str, int]) -> ast.Module:
    """Parse a script, with other numbers in the places of some."""
    tree = parse(source)
    for name, constant in _constants(tree):
        if name in numbers:
            constant.value = numbers[name]
    return tree


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value) if _is_number(value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if _is_number(value):
                yield name, value
            case ast.Call(args=arguments, keywords=keywords):
                yield from _of_call(arguments, keywords)
            case ast.arguments():
                yield from _defaults(node)


def _of_call(arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Iterator[tuple[str, ast.Constant]]:
    """Yield keyword arguments; the default of `add_argument("--batch-size", default=16)` is one of batch_size."""
    last = arguments[-1] if arguments else None
    text = last.value if isinstance(last, ast.Constant) and isinstance(last.value, str) else ""
    option = text.removeprefix("--").replace("-", "_") if text.startswith("--") else ""
    for keyword in keywords:
        if _is_number(keyword.value) and keyword.arg is not None:
            yield option if option and keyword.arg == "default" else keyword.arg, keyword.value


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.Constant]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(positional), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    yield from ((argument.arg, default) for argument, default in pairs if _is_number(default))


def _is_number(node: ast.AST | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) is int
