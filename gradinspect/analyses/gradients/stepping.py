"""Backward, one node at a time: what each step observed, where to stop, and the outcome."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import prod
from typing import Literal, NamedTuple, TypeAlias

from gradinspect.analyses.selection.name_patterns import matching_names
from gradinspect.analyses.structure.node_names import named_nodes, names_of_leaf
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Record, Size, argument_name
from gradinspect.units import parse_whole

Check: TypeAlias = Literal["equal", "differs", "watched", "leaf"]
Number: TypeAlias = float | int | bool | str  # a str is a complex number


class TensorPreview(Record, frozen=True, kw_only=True):
    """A tensor for display: its statistics, and all values if it is small."""

    shape: tuple[Size, ...]
    dtype: str
    values: tuple[Number, ...] | None = None  # in row-major order; None if there are too many or they cannot be read
    norm: float | None = None  # None for an empty or non-numeric tensor
    low: float | None = None  # for complex numbers, the smallest absolute value
    high: float | None = None
    num_zeros: int = 0
    num_nonfinite: int = 0

    @property
    def num_elements(self) -> int:
        """The number of elements; 0 for one whose rows differ in length, of which no figures are taken."""
        known = [size for size in self.shape if isinstance(size, int)]
        return prod(known) if len(known) == len(self.shape) else 0

    @property
    def is_zero(self) -> bool:
        """Whether it has elements and each is exactly zero."""
        return self.num_elements > 0 and self.num_zeros == self.num_elements


class Arrived(Record, frozen=True, kw_only=True):
    """The gradient of one forward output, as the node received it."""

    tensor: TensorPreview | None = None  # None: no gradient
    num_added: int = 0  # gradients summed into it
    is_changed: bool = False  # a hook modified that sum


class Passed(Record, frozen=True, kw_only=True):
    """The gradient of one forward input, at one position of `next_edges`."""

    tensor: TensorPreview | None = None
    made_shape: tuple[int, ...] | None = None  # before the engine undid broadcasting by a sum
    made_dtype: str | None = None  # before the engine cast it
    is_changed: bool = False  # a hook modified the formula's result


class SavedPreview(Record, frozen=True, kw_only=True):
    """One saved attribute, with its values."""

    name: str  # "self", "result", "tensors[2]"
    tensor: TensorPreview | None = None
    text: str = ""  # if it is not a tensor, or cannot be shown


class Step(Record, frozen=True, kw_only=True):
    """One executed node."""

    order: int  # 1 for the first
    node: int
    incoming: tuple[Arrived, ...]
    outgoing: tuple[Passed, ...] = ()  # empty for a leaf
    saved: tuple[SavedPreview, ...] = ()
    check: Check = "watched"  # whether the formula, called by hand, gave what the engine returned
    reason: str = ""  # why a node was only observed
    before: TensorPreview | None = None  # the leaf's .grad before this step


class SteppingOutcome(Record, frozen=True, kw_only=True):
    """How far the steps agreed with the engine."""

    graph: Graph
    num_steps: int
    num_equal: int = 0  # nodes whose formula, called by hand, was bit-equal to the engine
    differing: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()  # nodes whose incoming gradient was modified by a hook
    watched: tuple[tuple[str, int], ...] = ()  # reason for not calling it by hand -> number of nodes
    num_leaves: int = 0  # leaves whose gradient is bit-equal to the sum of the steps
    differing_leaves: tuple[str, ...] = ()
    num_unread_leaves: int = 0  # whose values cannot be read, as on the meta device
    is_complete: bool = True  # False if the user quit before the end


def combine(first: SteppingOutcome, second: SteppingOutcome) -> SteppingOutcome:
    """Combine the outcomes of two passes over one graph."""
    watched = Counter(dict(first.watched))
    watched.update(dict(second.watched))
    return SteppingOutcome(
        graph=first.graph,
        num_steps=first.num_steps + second.num_steps,
        num_equal=first.num_equal + second.num_equal,
        differing=(*first.differing, *second.differing),
        changed=(*first.changed, *second.changed),
        watched=tuple(watched.most_common()),
        num_leaves=first.num_leaves + second.num_leaves,
        differing_leaves=(*first.differing_leaves, *second.differing_leaves),
        num_unread_leaves=first.num_unread_leaves + second.num_unread_leaves,
        is_complete=second.is_complete,
    )


class Breakpoint(NamedTuple):
    """Where to stop."""

    text: str  # as the user wrote it
    hits: Callable[[Step], bool]
    nodes: Collection[int] | None = None  # all that it can hit; None: what a gradient looks like decides


_SHAPE = re.compile(r"\[?\s*(\d+|\*)(\s*[,x]\s*(\d+|\*))*\s*,?\s*\]?")


def parse_breakpoint(text: str, graph: Graph) -> Breakpoint:
    """Parse `nan`, `zero`, `#12`, `model.py:41`, `32x64`, or a shell pattern for a class or module.

    Raises:
        GradInspectError: Nothing in the graph has this name.
    """
    word = text.strip()
    looks = _looks(word)
    if looks is not None:
        return Breakpoint(word, looks)
    nodes = _nodes(word, graph)
    return Breakpoint(word, lambda step: step.node in nodes, nodes)


def _looks(word: str) -> Callable[[Step], bool] | None:
    """Return the condition on gradients that a word stands for; None: it names nodes."""
    if word in {"nan", "inf"}:
        return turns_nonfinite
    if word == "zero":
        return turns_zero
    return _has_shape(tuple(re.findall(r"\d+|\*", word))) if _SHAPE.fullmatch(word) else None


def _nodes(word: str, graph: Graph) -> Collection[int]:
    file, colon, line = word.rpartition(":")
    number = parse_whole(line)
    return _on_line(graph, file, number) if number is not None and colon else named_nodes(word, graph)


def _on_line(graph: Graph, file: str, line: int) -> Collection[int]:
    frames = {
        index
        for index, frame in enumerate(graph.frames)
        if frame.line == line and (frame.file == file or frame.file.endswith(f"/{file}"))
    }
    nodes = {number for number, node in enumerate(graph.nodes) if node.frame in frames}
    if not nodes:
        raise GradInspectError(
            f"No node was made at '{file}:{line}'.", "See the lines with 'where' or gradinspect trace."
        )
    return nodes


def _has_shape(wanted: Sequence[str]) -> Callable[[Step], bool]:
    def hits(step: Step) -> bool:
        return any(
            len(tensor.shape) == len(wanted)
            and all(size in {"*", str(found)} for size, found in zip(wanted, tensor.shape, strict=True))
            for tensor in _tensors(step)
        )

    return hits


def _tensors(step: Step) -> Iterator[TensorPreview]:
    found = (*(part.tensor for part in step.incoming), *(part.tensor for part in step.outgoing))
    return (tensor for tensor in found if tensor is not None)


def turns_nonfinite(step: Step) -> bool:
    """Return whether a node received only finite gradients and returned a non-finite one."""
    came = [part.tensor for part in step.incoming if part.tensor is not None]
    went = [part.tensor for part in step.outgoing if part.tensor is not None]
    return not any(tensor.num_nonfinite for tensor in came) and any(tensor.num_nonfinite for tensor in went)


def turns_zero(step: Step) -> bool:
    """Return whether a node received a gradient and returned only zeros."""
    came = [part.tensor for part in step.incoming if part.tensor is not None]
    went = [part.tensor for part in step.outgoing if part.tensor is not None]
    return bool(went) and all(tensor.is_zero for tensor in went) and any(not tensor.is_zero for tensor in came)


def leaf_node(word: str, graph: Graph) -> int:
    """Find a parameter by its name.

    Raises:
        GradInspectError: No leaf has this name.
    """
    names = {
        name: number
        for number, node in enumerate(graph.nodes)
        if node.leaf is not None
        for name in names_of_leaf(graph, node.leaf)
    }
    if word not in names:
        matching_names(word, names.keys(), "parameter")
    return names[word] if word in names else names[min(matching_names(word, names.keys(), "parameter"))]


def path_to_root(graph: Graph, node: int) -> tuple[int, ...]:
    """Find a shortest path from a node back to a root, node first."""
    before = _came_from(graph)
    roots = {root.node for root in graph.roots}
    reached: dict[int, int | None] = {node: None}
    queue = [node]
    for current in queue:
        if current in roots:
            return tuple(reversed(list(_back(reached, current))))
        for previous in before.get(current, ()):
            if previous not in reached:
                reached[previous] = current
                queue.append(previous)
    return (node,)


def _came_from(graph: Graph) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for edge in node.next_edges:
            if edge is not None:
                before.setdefault(edge.next_node, []).append(number)
    return before


def _back(reached: dict[int, int | None], node: int | None) -> Iterable[int]:
    while node is not None:
        yield node
        node = reached[node]


def place_name(graph: Graph, node: int, position: int) -> str:
    """Name a position of a node's `next_edges` by the forward argument, or by its number."""
    return argument_name(graph, graph.nodes[node], position) or f"[{position}]"
