"""Find nodes by name: `#12`, a class, a module, a parameter; and name the function that a node was made by.

What comes in: a name from the user and a `Graph`, or a node. What goes out: node ids, or a name.
"""

import re
from collections.abc import Iterator

from gradinspect.analyses.selection.name_patterns import containing_paths, matching_names
from gradinspect.analyses.structure.call_names import OUTERMOST, short_name, shown_path
from gradinspect.errors import GradInspectError
from gradinspect.graph import Frame, Graph, Leaf, Node
from gradinspect.units import parse_whole

COMPILED = "compiled by torch.compile"
_BACKWARD = re.compile(r"Backward\d*$")


def node_number(word: str, graph: Graph) -> int:
    """Read `#12` or `12`.

    Raises:
        GradInspectError: There is no such node.
    """
    number = parse_whole(word.removeprefix("#"))
    if number is None or number >= len(graph.nodes):
        raise GradInspectError(f"There is no node '{word}'.", f"The nodes are #0 to #{len(graph.nodes) - 1}.")
    return number


def named_nodes(word: str, graph: Graph) -> frozenset[int]:
    """Find `#12`, the nodes of a class or of a module and its submodules, or a parameter's AccumulateGrad.

    A class is also found by the name of its operator or custom Function: `Addmm` is AddmmBackward0.

    Raises:
        GradInspectError: Nothing in the graph has this name.
    """
    if word.startswith("#"):
        return frozenset({node_number(word, graph)})
    names: dict[str, set[int]] = {}
    for number, node in enumerate(graph.nodes):
        for name in _names_of(graph, node):
            names.setdefault(name, set()).add(number)
    found = matching_names(word, names.keys(), "class, module or parameter in this graph")
    return frozenset[int]().union(*(names[name] for name in found))


def class_name_of(node: Node) -> str:
    """Return the qualified class of a custom Function; of another node, the name of its class."""
    return node.name if node.function is None or node.kind == "compiled" else node.function


def hook_names(node: Node) -> tuple[str, ...]:
    """Name the Python hooks that torch will run on a node: `post: clip`."""
    return tuple(f"{hook.kind}: {hook.name or 'a function'}" for hook in node.hooks)


def function_words(graph: Graph, number: int) -> str | None:
    """Say which custom Function a node belongs to, or which function torch.compile has compiled; None: neither."""
    node = graph.nodes[number]
    if node.kind != "compiled" or node.function is None:
        return node.function
    name = _compiled_function(graph, number)
    return f"{COMPILED}: {name}" if name else COMPILED


def _compiled_function(graph: Graph, number: int) -> str | None:
    """Name the function of the program that one of the operators behind a compiled node has run in."""
    caller = graph.nodes[number].frame
    for node in graph.nodes[number + 1 :]:
        if node.kind != "compiled" or node.function is not None:
            return None
        frame = _frame_called_from(graph, node.frame, caller)
        if frame is not None:
            return _with_class(graph, number, frame.function)
    return None


def _frame_called_from(graph: Graph, frame: int | None, caller: int | None) -> Frame | None:
    while frame is not None and graph.frames[frame].caller != caller:
        frame = graph.frames[frame].caller
    found = None if frame is None or frame == caller else graph.frames[frame]
    return None if found is None or found.is_library else found


def _with_class(graph: Graph, number: int, function: str) -> str:
    """Name a method of a module with its class, as other lines do: a compiler keeps the name of the function alone."""
    module = graph.nodes[number].module
    is_method = function == "forward" and module is not None
    return f"{graph.modules[module].class_name}.{function}" if is_method else function  # type: ignore[index]


def module_names(graph: Graph) -> frozenset[str]:
    """Return the names of all modules that were called: paths, and what is shown, "model.3" for "3"."""
    return frozenset(name for path in {call.path for call in graph.modules} for name in names_of_path(graph, path))


def names_of_path(graph: Graph, path: str) -> tuple[str, str]:
    """Return the path of a module, and the name that is shown of it."""
    return path, short_name(path, None, graph.model_name)


def names_of_leaf(graph: Graph, leaf: Leaf) -> Iterator[str]:
    """Yield all names of a leaf, also as they are shown: "net.2.bias" for "2.bias"."""
    for name in filter(None, (leaf.name, *leaf.aliases)):
        yield from dict.fromkeys((name, shown_path(name, graph.model_name)))


def names_around(graph: Graph, path: str) -> Iterator[str]:
    """Yield all names of a module, and of those that it is in."""
    for parent in containing_paths(path):
        yield from names_of_path(graph, parent)


def _names_of(graph: Graph, node: Node) -> Iterator[str]:
    """Yield every name of a node; a module's as it is shown too: "3" is shown as "model.3"."""
    yield from (node.name, _BACKWARD.sub("", node.name))
    if node.module is not None:
        for path in containing_paths(graph.modules[node.module].path):
            yield from (path or OUTERMOST, short_name(path, None, graph.model_name))
    if node.leaf is not None:
        yield from names_of_leaf(graph, node.leaf)
