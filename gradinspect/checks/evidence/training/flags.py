"""Attributes that were meant to freeze parameters, and that torch does not read; and the lines that set them.

NOTE [Whose flag]
The objects show only that the attribute is there, so the line is searched for in the program's own files. If modules
have an attribute `requires_grad`, the same name is set of tensors elsewhere, and rightly: an assignment in a loop over
`parameters()`, or to a `.weight`, is one of these. A class that reads `self.requires_grad` has a flag of its own.
"""

import ast
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.source_structure import attribute_reads, attribute_writes, own_sources
from gradinspect.torch_api.modules import own_parameters

FLAG = "requires_grad"
_WORDS = frozenset(("requiresgradient", "requiresgradients", "requiregradient", "requiregradients"))
_LIKENESS = 0.86  # of a misspelled name, without underscores
_OF_TENSORS = ("parameters(", "state_dict(", "param_groups")  # what loops over tensors go through
_TENSORS = ("weight", "bias", "data")  # members that are tensors


class FoundFlag(NamedTuple):
    """A flag without effect."""

    attribute: str
    names: tuple[str, ...]  # of the parameters
    module: str | None = None
    unfreezes: bool = False  # it was set to True


class FlagLine(NamedTuple):
    """The line that sets a flag, and what it sets it of."""

    file: str
    line: int
    target: str


def flags_of_tensors(leaves: Sequence[tuple[torch.Tensor, str]]) -> Iterator[FoundFlag]:
    """Yield the misspelled flags of parameters that require grad all the same."""
    found: dict[str, list[str]] = {}
    for leaf, name in leaves:
        for attribute, value in vars(leaf).items():
            if value is False and is_misspelled(attribute):
                found.setdefault(attribute, []).append(name)
    for attribute, names in found.items():
        yield FoundFlag(attribute, tuple(dict.fromkeys(filter(None, names))) or ("a tensor",))


def flags_of_modules(roots: Sequence[nn.Module], leaves: Sequence[tuple[torch.Tensor, str]]) -> Iterator[FoundFlag]:
    """Yield the flags of modules with parameters that require grad all the same."""
    reached = {id(leaf): name for leaf, name in leaves if leaf.requires_grad}
    for root in roots:
        for path, module in named_modules(root):
            for attribute in [name for name, value in vars(module).items() if value is False and _is_flag(name)]:
                names = tuple(dict.fromkeys(reached[id(p)] for p in all_parameters(module) if id(p) in reached))
                if names:
                    yield FoundFlag(attribute, names, path)


def unfreezing_flags(roots: Sequence[nn.Module]) -> Iterator[FoundFlag]:
    """Yield the flags that were to unfreeze modules of which no parameter requires grad."""
    seen: set[int] = set()
    for root in roots:
        for path, module in named_modules(root):
            if vars(module).get(FLAG) is True and id(module) not in seen:
                seen.add(id(module))
                own = {name: one for part, inner in named_modules(module) for name, one in _named(part, inner)}
                if own and not any(one.requires_grad for one in own.values()):
                    yield FoundFlag(FLAG, tuple(f"{path}.{name}".lstrip(".") for name in own), path, unfreezes=True)


def _named(path: str, module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, one in own_parameters(module).items():
        if one is not None:
            yield f"{path}.{name}".lstrip("."), one


def line_of_flag(flag: FoundFlag) -> FlagLine | None:
    """Find the line that sets a flag. NOTE [Whose flag]."""
    last = (flag.module or "").rpartition(".")[2]
    best: FlagLine | None = None
    for file in own_sources(flag.attribute):
        if flag.module is not None and any(target == "self" for target in attribute_reads(file, flag.attribute)):
            continue
        for target, around in attribute_writes(file, flag.attribute):
            if flag.module is not None and _is_of_tensor(target, around):
                continue
            line = FlagLine(file, target.lineno, ast.unparse(target))
            if flag.module is None or line.target.rpartition(".")[2] == last:
                return line
            best = best or line
    return best


@cache
def is_misspelled(name: str) -> bool:
    """Return whether the name of an attribute is nearly `requires_grad`."""
    if name == FLAG or ("grad" not in name.lower() and "gard" not in name.lower()):
        return False
    word = name.lower().replace("_", "")
    return word in _WORDS or SequenceMatcher(None, word, FLAG.replace("_", "")).ratio() >= _LIKENESS


def _is_flag(name: str) -> bool:
    return name == FLAG or is_misspelled(name)


def _is_of_tensor(target: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Return whether an attribute is set of a tensor, judged by its name or by the loop around it."""
    if isinstance(target, ast.Attribute) and target.attr in _TENSORS:
        return True
    for node in around:
        if isinstance(node, ast.For) and any(
            isinstance(name, ast.Name) and isinstance(target, ast.Name) and name.id == target.id
            for name in ast.walk(node.target)
        ):
            return any(text in ast.unparse(node.iter) for text in _OF_TENSORS)
    return False
