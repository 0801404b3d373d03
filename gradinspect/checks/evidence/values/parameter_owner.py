"""Which module a parameter belongs to, and whether the program called it."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn

from gradinspect.torch_api.modules import own_children, own_parameters

_HOLDERS = (nn.ParameterList, nn.ParameterDict)  # these are never called


class Owner(NamedTuple):
    """The module that holds a parameter."""

    module: nn.Module
    is_called: bool
    is_unused_choice: bool  # in a list or dict of modules of which only others were called


def owner_of(parameter: torch.Tensor, roots: Iterable[nn.Module], called: set[int]) -> Owner | None:
    """Find the module that holds a parameter.

    Args:
        parameter: Its tensor.
        roots: Where to search.
        called: The ids of all modules that were called.
    """
    for root in roots:
        for chain in _chains(root):
            if any(value is parameter for value in own_parameters(chain[-1]).values()):
                is_called = id(chain[-1]) in called or isinstance(chain[-1], _HOLDERS)
                return Owner(chain[-1], is_called, _is_unused_choice(chain, called))
    return None


def _chains(root: nn.Module) -> Iterator[tuple[nn.Module, ...]]:
    """Yield each module once, preceded by its parents."""
    todo: list[tuple[nn.Module, ...]] = [(root,)]
    seen: set[int] = set()
    while todo:
        chain = todo.pop()
        if id(chain[-1]) in seen:
            continue
        seen.add(id(chain[-1]))
        yield chain
        todo.extend((*chain, part) for part in own_children(chain[-1]).values() if part is not None)


def _is_unused_choice(chain: tuple[nn.Module, ...], called: set[int]) -> bool:
    for parent, child in pairwise(chain):
        if isinstance(parent, nn.ModuleList | nn.ModuleDict) and not _is_called(child, called):
            return any(_is_called(part, called) for part in own_children(parent).values() if part is not None)
    return False


def _is_called(module: nn.Module, called: set[int]) -> bool:
    return any(id(chain[-1]) in called for chain in _chains(module))
