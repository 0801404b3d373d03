"""Put the backward operators of compiled nodes into a record, behind the node that runs them.

What comes in: a record in which each node of torch.compile is one box, and the live nodes. What goes out: a record in
which each is followed by the operators of its backward, as nodes with the module and the line of the forward operator
that they belong to, and with the saved tensors that they use. What no operator uses stays with the box.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.memory.compiled import CLOSED
from gradinspect.analyses.structure.call_names import without_wrappers
from gradinspect.catalog import Catalog
from gradinspect.graph import Edge, Frame, Graph, ModuleCall, Node, SavedValue, TensorInfo
from gradinspect.recording.compiled_kept import is_kept_by_eager, saves_of
from gradinspect.recording.frames import is_own_file, lines_in_stack, source_line
from gradinspect.recording.values.tensors import plain_size
from gradinspect.torch_api.compilations import resumed
from gradinspect.torch_api.compiled_graphs import (
    UNCHECKED,
    BackwardGraph,
    backward_graph,
    flops_of,
    forward_name,
    is_given,
    is_recomputed,
    is_stripped,
    maker_name,
    modules_of,
    operator_name,
    results_of,
    stack_of,
    users_of,
    whole_of,
)
from gradinspect.units import format_count

_UNREADABLE = f"{CLOSED}compiled nodes could not be read with this torch ({{}}). --eager shows the graph without."
_ANEW = "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 lets torch compile without its cache"
_NOTED = ("needs_input_grad", "ctx._external_objects")  # the latter since torch 2.14
_KEPT = ("saved_tensors", f"ctx.{UNCHECKED}")


def open_compiled(
    graph: Graph, live: Sequence[Any], module_paths: Mapping[int, str], base_folder: Path, catalog: Catalog
) -> Graph:
    """Show what is inside compiled nodes.

    Args:
        graph: The record.
        live: Its live nodes, under the same numbers.
        module_paths: Identity of a module -> its path.
        base_folder: Files below it are named relative to it.
        catalog: What the operators of eager save.
    """
    compiled = [number for number, node in enumerate(graph.nodes) if node.kind == "compiled"]
    if not compiled:
        return graph
    opening = _Opening(graph, module_paths, base_folder, catalog)
    try:
        boxes = {number: _box(graph.nodes[number], live[number]) for number in compiled}
        return opening.opened({number: box for number, box in boxes.items() if box is not None}, len(compiled))
    except Exception as error:  # what a compiler notes of its graphs is private, and differs between versions
        return replace(graph, warnings=(*graph.warnings, _UNREADABLE.format(type(error).__name__)))


class _Box(NamedTuple):
    """A compiled node whose backward graph is known."""

    graph: BackwardGraph
    saved: list[SavedValue]  # of each of its saved tensors
    rest: tuple[SavedValue, ...]  # what else it has
    edges: dict[int, Edge]  # place of a result -> where that gradient goes


def _box(node: Node, live: Any) -> _Box | None:
    saved = [value for value in node.saved if _is_argument(value)]
    if any(value.name in _KEPT and value.status == "freed" for value in node.saved):
        return None
    graph = backward_graph(live, len(saved))
    if graph is None or len(graph.saved) != len(saved):
        return None
    needs = [place for place, is_needed in enumerate(live.needs_input_grad) if is_needed]
    edges = [edge for edge in node.next_edges if edge is not None]
    if len(live.needs_input_grad) != len(graph.results) or len(needs) != len(edges):
        return None
    rest = tuple(value for value in node.saved if not _is_argument(value) and not _is_of_compiler(value))
    return _Box(graph, saved, rest, dict(zip(needs, edges, strict=True)))


def _is_argument(value: SavedValue) -> bool:
    return value.name in _KEPT and value.index is not None


def _is_of_compiler(value: SavedValue) -> bool:
    """Return whether this says nothing about the program: what the compiler notes on each node, and empty lists."""
    return value.name in _NOTED or value.value == ()


def named_saved(node: Node, live: Any) -> Node:
    """Name the saved tensors of a compiled node after what made them, and leave out what only its compiler needs.

    Args:
        node: The record of one node.
        live: The node itself, before it runs: it drops what it keeps.
    """
    try:
        box = _box(node, live)
    except Exception:  # what a compiler notes of its graphs is private, and differs between versions
        box = None
    if box is None:
        return replace(node, saved=tuple(value for value in node.saved if not _is_of_compiler(value)))
    made = zip(box.graph.saved, box.saved, strict=True)
    return replace(node, saved=(*(replace(one, operator=maker_name(call)) for call, one in made), *box.rest))


def makers_of_saved(live: Any, num_saved: int, module_paths: Mapping[int, str], base: str | None) -> list[str | None]:
    """List the paths of the modules that made the saved tensors of a compiled node; empty if its graph is not known.

    Args:
        live: The node, before it runs.
        num_saved: How many tensors it keeps, those that torch does not check for changes included.
        module_paths: Identity of a module -> its path.
        base: Path of the module that was compiled; None: it is a function.

    Returns:
        A path for each tensor; None for one that the compiled code was given, or where no module is noted.
    """
    try:
        graph = backward_graph(live, num_saved)
        if graph is None or len(graph.saved) != num_saved:
            return []
        return [_maker_path(argument, module_paths, base) for argument in graph.saved]
    except Exception:  # what a compiler notes of its graphs is private, and differs between versions
        return []


def _maker_path(argument: Any, module_paths: Mapping[int, str], base: str | None) -> str | None:
    around = modules_of(argument)
    if maker_name(argument) is None or not around:
        return None
    identity, text, _ = around[-1]
    return _path_of(identity, text, base, module_paths)


def _path_of(identity: int, text: str, base: str | None, known_paths: Mapping[int, str]) -> str:
    """Return the path of a module, which one compiled graph for several blocks has of the first of them."""
    known = known_paths.get(identity)
    if known is not None and (not base or known == base or known.startswith(f"{base}.")):
        return known
    inside = without_wrappers(text.rpartition("]")[2].strip("."))
    return ".".join(part for part in (base, inside) if part)


class _Opening:
    """Collects the modules and lines of what is found."""

    def __init__(self, graph: Graph, module_paths: Mapping[int, str], base_folder: Path, catalog: Catalog) -> None:
        self._graph = graph
        self._saves = saves_of(catalog)
        self._paths = module_paths
        self._base_folder = base_folder
        self._modules = list(graph.modules)
        self._calls = Counter(call.path for call in graph.modules)
        self._frames = list(graph.frames)
        self._storages = list(graph.storages)
        self._known_frames: dict[tuple[object, ...], int] = {}

    def opened(self, boxes: Mapping[int, _Box], num_compiled: int) -> Graph:
        graph, places, shift = self._graph, [], 0
        for number in range(len(graph.nodes)):
            places.append(number + shift)
            shift += len(boxes[number].graph.operators) if number in boxes else 0
        nodes: list[Node] = []
        for number, node in enumerate(graph.nodes):
            moved = _moved(node, places)
            if number in boxes:
                nodes.extend(self._inside(moved, boxes[number], len(nodes), places))
            else:
                nodes.append(moved)
        return replace(
            graph,
            nodes=tuple(nodes),
            roots=tuple(replace(root, node=places[root.node]) for root in graph.roots),
            storages=tuple(self._storages),
            modules=tuple(self._modules),
            frames=tuple(self._frames),
            warnings=(*graph.warnings, *_notes(num_compiled, list(boxes.values()))),
        )

    def _inside(self, node: Node, box: _Box, start: int, places: Sequence[int]) -> Iterator[Node]:
        """Yield the node of the box, and its operators."""
        operators = box.graph.operators
        numbers = {call: start + 1 + place for place, call in enumerate(operators)}
        out: dict[Any, list[Edge]] = {}
        for place, edge in box.edges.items():
            result = box.graph.results[place]
            if result is not None:
                out.setdefault(whole_of(result), []).append(replace(edge, next_node=places[edge.next_node]))
        kept: dict[Any, list[SavedValue]] = {}
        used = set()
        for argument, value in zip(box.graph.saved, box.saved, strict=True):
            named = self._named(value, argument, node.frame)
            for user in users_of(argument):
                if user in numbers:
                    kept.setdefault(user, []).append(named)
                    used.add(value)
        fed = {user for call in operators for user in users_of(call)}
        first = [Edge(next_node=numbers[call]) for call in operators if call not in fed]
        direct = [edge for call, edges in out.items() if call not in numbers for edge in edges]
        unused = tuple(value for value in box.saved if value not in used)
        yield replace(node, next_edges=(*first, *direct), saved=(*unused, *box.rest))
        calls: dict[tuple[object, ...], int] = {}
        for call in operators:
            inner = [Edge(next_node=numbers[user]) for user in users_of(call) if user in numbers]
            yield Node(
                name=operator_name(call),
                kind="compiled",
                forward_outputs=tuple(map(_info, results_of(call))),
                next_edges=(*inner, *out.get(call, ())),
                saved=tuple(kept.get(call, ())),
                module=self._module(call, node.module, calls),
                frame=self._frame(call, node.frame),
                forward=forward_name(call),
                is_recomputed=is_recomputed(call),
                backward_flops=flops_of(call) or None,
                thread=node.thread,
            )

    def _named(self, value: SavedValue, argument: Any, caller: int | None) -> SavedValue:
        """Say which operator made a saved tensor, and on which line; one that the forward was given has neither."""
        value = replace(value, kept_by_eager=is_kept_by_eager(argument, self._saves))
        if is_given(argument):
            return value
        if value.origin == "input" and value.origin_name is None:
            value = replace(value, origin="activation")
            if value.tensor is not None and value.tensor.storage is not None:
                storage = self._storages[value.tensor.storage]
                self._storages[value.tensor.storage] = replace(storage, origin="activation")
        return replace(value, operator=maker_name(argument), frame=self._frame(argument, caller))

    def _module(self, call: Any, outer: int | None, calls: dict[tuple[object, ...], int]) -> int | None:
        """Find the call of the innermost module around an operator; the same one for all operators in it."""
        around = None if outer is None else self._modules[outer]
        base = None if around is None or around.path == around.class_name else around.path  # one that only wraps
        parent = outer
        key: tuple[object, ...] = ()
        for identity, text, class_name in modules_of(call):
            path = _path_of(identity, text, base, self._paths)
            if path == base:
                continue
            key = (*key, path)
            if key not in calls:
                self._calls[path] += 1
                calls[key] = len(self._modules)
                self._modules.append(
                    ModuleCall(path=path, class_name=class_name, call=self._calls[path], parent=parent)
                )
            parent = calls[key]
        return parent

    def _frame(self, call: Any, caller: int | None) -> int | None:
        """Find the line of the forward operator that a call belongs to."""
        for file, line, function in lines_in_stack(stack_of(call)):
            key = (file, line, function, caller)
            if key not in self._known_frames:
                self._known_frames[key] = len(self._frames)
                self._frames.append(self._record(file, line, function, caller))
            caller = self._known_frames[key]
        return caller

    def _record(self, file: str, line: int, function: str, caller: int | None) -> Frame:
        found = source_line(file, line, self._base_folder)
        return replace(found, function=resumed(function), caller=caller, is_library=not is_own_file(file))


def _moved(node: Node, places: Sequence[int]) -> Node:
    """Renumber what a node refers to."""
    edges = (None if edge is None else replace(edge, next_node=places[edge.next_node]) for edge in node.next_edges)
    return replace(node, next_edges=tuple(edges), saved=tuple(_moved_value(value, places) for value in node.saved))


def _moved_value(value: SavedValue, places: Sequence[int]) -> SavedValue:
    if value.tensor is None or value.tensor.made_by is None:
        return value
    return replace(value, tensor=replace(value.tensor, made_by=places[value.tensor.made_by]))


def _info(value: Any) -> TensorInfo | None:
    if not hasattr(value, "dtype"):
        return None
    shape = tuple(plain_size(size) for size in value.shape)
    return TensorInfo(shape=shape, dtype=str(value.dtype).removeprefix("torch."), device=str(value.device))


def _notes(num_compiled: int, opened: Sequence[_Box]) -> Iterator[str]:
    closed = num_compiled - len(opened)
    if closed:
        yield (
            f"{CLOSED}{format_count(closed, 'compiled node')} is not known: torch took the code from its cache of an "
            f"earlier run, or its saved tensors are freed. {_ANEW}; --eager shows the graph without torch.compile."
        )
    bare = sum(is_stripped(box.graph) for box in opened)
    if bare:
        yield (
            f"{CLOSED}{format_count(bare, 'compiled node')} has no modules and lines: torch drops them where it "
            f"writes code to its cache or takes it from there, as in a second run. {_ANEW}."
        )
