"""Find nodes and module calls by text, as the search of the page does.

What comes in: a graph and a text. What goes out: the nodes and calls that match all its words. Words match, ignoring
case, a node's number, class and custom Function, the names of the leaves its gradients go to, its module's path and
class, shapes and dtypes, and its source line. A word with a bracket, such as `[*, 768]` or `f32[2, *]`, is a shape;
`*` matches one size.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradinspect.analyses.structure.node_names import function_words, names_of_leaf
from gradinspect.graph import Graph, Leaf, Node, frame_of
from gradinspect.units import format_tensor

SHAPE_WORD = re.compile(r"\S*\[[^\]]*\]?")


class Hit(NamedTuple):
    """One match."""

    node: int  # for a module call: the first of its nodes
    call: int | None = None  # index into Graph.modules, if the match is a call


class Found(NamedTuple):
    """The result of a search."""

    hits: tuple[Hit, ...] = ()
    num_named: int = 0  # how many of the first hits match without their source code


class _Entry(NamedTuple):
    """The searchable text of a node or call, in lower case."""

    hit: Hit
    words: str
    code: str  # of the source line
    shapes: str  # without spaces


_Test = Callable[[_Entry], bool]


class Search:
    """Searches one graph; the searchable text is collected once."""

    def __init__(self, graph: Graph) -> None:
        """Collect the searchable text."""
        self._entries = sorted(
            (*_calls(graph), *_nodes(graph)), key=lambda entry: (entry.hit.node, entry.hit.call is None)
        )

    def find(self, text: str) -> Found:
        """Return what matches all words of a text, in the order of node ids, a call before its nodes.

        A line of code has many words, so matches found only in source code come last.
        """
        tests = list(_tests(text))
        if not tests:
            return Found()
        entries = [entry for entry in self._entries if all(test(entry) for test in tests)]
        is_named = [all(test(entry._replace(code="")) for test in tests) for entry in entries]
        named = [entry.hit for entry, named in zip(entries, is_named, strict=True) if named]
        others = [entry.hit for entry, named in zip(entries, is_named, strict=True) if not named]
        return Found((*named, *others), len(named))


def _tests(text: str) -> Iterator[_Test]:
    for shape in SHAPE_WORD.findall(text):
        yield _shape_test(shape)
    for word in SHAPE_WORD.sub(" ", text).lower().split():
        yield _word_test(word)


def _word_test(word: str) -> _Test:
    return lambda entry: word in entry.words or word in entry.code


def _shape_test(pattern: str) -> _Test:
    sizes = r"[^,\[\]]+".join(map(re.escape, re.sub(r"\s", "", pattern.lower()).split("*")))
    test = re.compile(sizes)
    return lambda entry: test.search(entry.shapes) is not None


def _calls(graph: Graph) -> Iterator[_Entry]:
    """Yield the module calls, except those whose only node matches the same words."""
    first: dict[int, int] = {}
    num_nodes: Counter[int] = Counter()
    for node_id, node in enumerate(graph.nodes):
        call = node.module
        while call is not None:
            first.setdefault(call, node_id)
            num_nodes[call] += 1
            call = graph.modules[call].parent
    for call, node_id in first.items():
        module = graph.modules[call]
        if num_nodes[call] > 1 or graph.nodes[node_id].module != call:
            yield _Entry(Hit(node_id, call), f"{module.path} {module.class_name}".lower(), "", "")


def _nodes(graph: Graph) -> Iterator[_Entry]:
    for node_id, node in enumerate(graph.nodes):
        outputs = [format_tensor(info) for info in node.forward_outputs if info is not None]
        function = function_words(graph, node_id) or ""
        words = (f"#{node_id}", node.name, function, *_leaf_names(graph, node), *_place(graph, node), *outputs,
                 *_dtypes(node))  # fmt: skip
        leaf = [format_tensor(node.leaf.info)] if node.leaf is not None else []
        frame = frame_of(graph, node)
        code = "" if frame is None else frame.code
        shapes = "\n".join((*outputs, *leaf)).replace(" ", "")
        yield _Entry(Hit(node_id), "\n".join(words).lower(), code.lower(), shapes.lower())


def _leaf_names(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the names of a leaf, or of the leaves that a node leads to directly."""
    following = [graph.nodes[edge.next_node].leaf for edge in node.next_edges if edge is not None]
    leaves: list[Leaf | None] = [node.leaf, *following]
    for leaf in leaves:
        if leaf is not None:
            yield from names_of_leaf(graph, leaf)


def _place(graph: Graph, node: Node) -> Iterator[str]:
    """Yield the module and the source line."""
    if node.module is not None:
        yield from (graph.modules[node.module].path, graph.modules[node.module].class_name)
    if node.frame is not None:
        frame = graph.frames[node.frame]
        yield f"{frame.file}:{frame.line}"


def _dtypes(node: Node) -> Iterator[str]:
    infos = (None if node.leaf is None else node.leaf.info, *node.forward_outputs)
    yield from {info.dtype for info in infos if info is not None}
