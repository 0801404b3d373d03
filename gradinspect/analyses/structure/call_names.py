"""Names of modules and leaves that can be read alone: `layer4.1`, never `1`.

What comes in: dotted paths. What goes out: names.

NOTE [One spelling of a name]: on every screen, page and picture a module or a parameter is called what
`named_modules()` and `named_parameters()` of the program's model call it, and the model itself what the program's
variable is called, `model` if there is none; a path that begins with an index has that before it: `net.2.bias`. With
several models, each path begins with its model. Files for other programs have the paths themselves.
"""

import re
from itertools import takewhile
from typing import Final

from gradinspect.graph import Graph, Leaf, ModuleCall

OUTERMOST = "model"  # without a variable of the user
# A part of a path, or the end of one: `3`, `up3`. Other digits, leading zeros and more digits are a name.
INDEX: Final = re.compile(r"(?<![^.\w])(?<!\d)(?:0|[1-9][0-9]{0,17})(?![^.])")
WRAPPED: Final = "_orig_mod"  # what a wrapper of torch.compile calls the module in it
_INDICES: Final = re.compile(r"[\d*,-]+")  # also of a pattern: `*`, `0-3`, `0,2`


def short_name(path: str, parent: str | None, model: str = OUTERMOST) -> str:
    """Name a module relative to its caller, or to what both are in; an index keeps the name of what it is an index of.

    Args:
        path: Of the module; "" for the outermost.
        parent: The path of its caller.
        model: What to call the outermost.
    """
    parts = path.split(".")
    around = zip(parts[:-1], parent.split("."), strict=False) if parent else ()
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], around))
    while start and parts[start].isdigit():
        start -= 1
    return shown_path(".".join(parts[start:]), model)


def name_of_call(graph: Graph, call: ModuleCall) -> str:
    """Name a call by its path relative to the enclosing module, numbered if it is not the first."""
    caller = None if call.parent is None else graph.modules[call.parent].path
    return short_name(call.path, caller, graph.model_name) + (f" (call {call.call})" if call.call > 1 else "")


def shown_path(path: str, model: str) -> str:
    """Write a path, or a pattern like `*.attn`, so that no index stands without what it is an index of: `model.3`.

    NOTE [One spelling of a name].
    """
    if not path:
        return model
    return f"{model}.{path}" if _INDICES.fullmatch(path.partition(".")[0]) else path


def leaf_shown(graph: Graph, leaf: Leaf | None) -> str:
    """Write the name of a leaf as that of a module is; "" if it has none."""
    return shown_path(leaf.name, graph.model_name) if leaf is not None and leaf.name else ""


def node_shown(graph: Graph, number: int) -> str:
    """Name a node by its number and class, and a leaf by its name besides: `#3 AccumulateGrad net.2.bias`."""
    node = graph.nodes[number]
    return f"#{number} {node.name} {leaf_shown(graph, node.leaf)}".rstrip()


def without_wrappers(path: str) -> str:
    """Return a path without the parts that torch.compile adds around a module, `_orig_mod`."""
    return ".".join(part for part in path.split(".") if part != WRAPPED)


def is_wrapped(path: str) -> bool:
    """Return whether a path is that of a module in a wrapper of torch.compile, which is changed by its wrapper."""
    return path.rpartition(".")[2] == WRAPPED


def leaf_inside(graph: Graph, leaf: Leaf | None, path: str | None) -> str:
    """Name a leaf relative to a module that is named beside it: `weight` inside of `layer4.1.conv1`."""
    name = (leaf.name if leaf is not None else None) or ""
    return name.removeprefix(f"{path}.") if path and name.startswith(f"{path}.") else leaf_shown(graph, leaf)


def class_beside(name: str, class_name: str) -> str:
    """Return the class to write beside the name of a module: none if that ends in it, as of one that forward makes."""
    return "" if name.rpartition(".")[2].partition("#")[0] == class_name else class_name
