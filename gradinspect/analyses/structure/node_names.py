"""Find nodes by name: `#12`, a class, a module, a parameter.

What comes in: a name from the user and a `Graph`. What goes out: node ids.
"""

import re
from collections.abc import Iterator

from gradinspect.analyses.selection.name_patterns import containing_paths, matching_names
from gradinspect.analyses.structure.call_names import OUTERMOST, short_name
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Node
from gradinspect.units import parse_whole

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
    found = matching_names(word, names.keys(), "class, module or parameter")
    return frozenset[int]().union(*(names[name] for name in found))


def module_names(graph: Graph) -> frozenset[str]:
    """Return the names of all modules that were called: paths, and what is shown, "model.3" for "3"."""
    return frozenset(name for path in {call.path for call in graph.modules} for name in names_of_path(graph, path))


def names_of_path(graph: Graph, path: str) -> tuple[str, str]:
    """Return the path of a module, and the name that is shown of it."""
    return path, short_name(path, None, graph.model_name)


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
        yield from filter(None, (node.leaf.name, *node.leaf.aliases))
