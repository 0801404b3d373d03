"""Rewrite two captures of one program, the CPU's and a device's, so that a difference with a known cause is gone.

Whatever else differs stays: the rewritten captures are compared as wholes, and so is what the verbs say of them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from device_runs import CPU, SIMULATED

Capture: TypeAlias = dict[str, Any]
Captures: TypeAlias = tuple[Capture, Capture]  # the CPU's, and the device's
Rewriting: TypeAlias = Callable[[Capture, Capture], Captures]

DEVICE = re.compile(rf"\b{SIMULATED}(:\d)?\b")
NOT_FINITE = re.compile(r"The loss is (?:inf|-inf|nan)\.")
PER_THREAD = ("sequence_nr", "thread")
LEAF = "AccumulateGrad"
DROPOUT, PRODUCT = "NativeDropoutBackward0", "MulBackward0"
SUM = "AddBackward0"


def ordered_by_edges(expected: Capture, found: Capture) -> Captures:
    """Number the nodes of both from their roots along their edges, so that the order they were made in is gone."""
    return ordered(expected), ordered(found)


def ordered(capture: Capture) -> Capture:
    """Number the nodes of a capture along its edges, and leave out those that no root leads to."""
    graph = capture["graph"]
    order = from_the_roots(graph)
    places = {number: place for place, number in enumerate(order)}
    nodes = [renumbered(graph["nodes"][number], places) for number in order]
    return tidied({**capture, "graph": {**graph, "nodes": nodes, "roots": renumbered(graph["roots"], places)}})


def from_the_roots(graph: Capture) -> list[int]:
    """Order the nodes topologically: depth first, leaves last."""
    nodes: list[Any] = graph["nodes"]
    found: list[int] = []
    seen: set[int] = set()
    for root in reversed(graph["roots"]):
        stack = [(root["node"], False)]
        while stack:
            number, is_done = stack.pop()
            if is_done:
                found.append(number)
            elif number not in seen:
                seen.add(number)
                stack += [(number, True), *((after, False) for after in next_of(nodes[number]))]
    found.reverse()
    return sorted(found, key=lambda number: nodes[number]["name"] == LEAF)


def next_of(node: Capture) -> list[int]:
    """Return what a node leads to."""
    return [edge["next_node"] for edge in node.get("next_edges", ()) if edge is not None]


def renumbered(value: Any, places: dict[int, int]) -> Any:
    """Give what refers to nodes their new numbers."""
    if isinstance(value, list):
        return [renumbered(item, places) for item in value]
    if not isinstance(value, dict):
        return value
    refer = ("next_node", "node", "made_by")  # a node's own `made_by` is a name
    return {
        key: places[item] if key in refer and isinstance(item, int) else renumbered(item, places)
        for key, item in value.items()
    }


def tidied(capture: Capture) -> Capture:
    """Number the storages as the nodes come, and leave out storages and arguments that no node has."""
    graph = capture["graph"]
    numbers: dict[int, int] = {}
    nodes = [_with_storages(node, numbers) for node in graph["nodes"]]
    storages = [graph["storages"][number] for number in numbers]
    names = {node["name"] for node in nodes} - {DROPOUT}  # of which the CPU's record has no arguments
    arguments = {name: given for name, given in graph["arguments"].items() if name in names}
    return {**capture, "graph": {**graph, "nodes": nodes, "storages": storages, "arguments": arguments}}


def _with_storages(value: Any, numbers: dict[int, int]) -> Any:
    if isinstance(value, list):
        return [_with_storages(item, numbers) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key == "storage" and isinstance(item, int):
            found[key] = numbers.setdefault(item, len(numbers))
        elif key == "held_storages":
            found[key] = [numbers.setdefault(number, len(numbers)) for number in item]
        else:
            found[key] = _with_storages(item, numbers)
    return found


def dropout_as_one_node(expected: Capture, found: Capture) -> Captures:
    """Write the CPU's product with a mask as the device's dropout, of the same line and module, without the mask."""
    pairs = list(zip(expected["graph"]["nodes"], found["graph"]["nodes"], strict=False))
    if len(expected["graph"]["nodes"]) != len(found["graph"]["nodes"]):
        return expected, found
    changed = [_one_dropout(*pair) for pair in pairs]
    return _with_nodes(expected, [pair[0] for pair in changed]), _with_nodes(found, [pair[1] for pair in changed])


def _one_dropout(expected: Capture, found: Capture) -> tuple[Capture, Capture]:
    if (expected["name"], found["name"]) == (PRODUCT, DROPOUT):
        edges = expected["next_edges"][:1] if expected["next_edges"][1:] == [None] else expected["next_edges"]
        return _without_mask({**expected, "name": DROPOUT, "next_edges": edges}), _without_mask(found)
    if (expected.get("made_by"), found.get("made_by")) == (PRODUCT, DROPOUT):  # of the second order
        return _without_mask({**expected, "made_by": DROPOUT}), _without_mask(found)
    return expected, found


def _without_mask(node: Capture) -> Capture:
    return {key: value for key, value in node.items() if key not in {"saved", "flops", "backward_flops"}}


def _with_nodes(capture: Capture, nodes: list[Capture]) -> Capture:
    return tidied({**capture, "graph": {**capture["graph"], "nodes": nodes}})


def gradients_added_in_any_order(expected: Capture, found: Capture) -> Captures:
    """Write sums of gradients, which backward adds up as they come, as one node each, without who came last."""
    return _summed(expected), _summed(found)


def _is_sum(node: Capture) -> bool:
    return node["name"] == SUM and "made_by" in node


def _summed(capture: Capture) -> Capture:
    graph = capture["graph"]
    nodes = list(graph["nodes"])
    keys: dict[int, str] = {}
    for number in reversed(from_the_roots(graph)):
        node = nodes[number]
        if _is_sum(node):
            edges = sorted(
                _summands(nodes, number), key=lambda edge: (keys[edge["next_node"]], edge.get("input_nr", 0))
            )
            kept = {key: value for key, value in node.items() if key in {"name", "kind", "forward_outputs"}}
            nodes[number] = {**kept, "next_edges": edges, "made_by": "the engine"}
        keys[number] = key(nodes[number], keys)
    return ordered({**capture, "graph": {**graph, "nodes": nodes}})


def _summands(nodes: list[Capture], number: int) -> Iterator[Capture]:
    for edge in nodes[number]["next_edges"]:
        if edge is not None and _is_sum(nodes[edge["next_node"]]):
            yield from _summands(nodes, edge["next_node"])
        elif edge is not None:
            yield edge


def key(node: Capture, keys: dict[int, str]) -> str:
    """Describe a node and all that it leads to, without numbers and devices."""
    after = [edge and (edge.get("input_nr"), keys[edge["next_node"]]) for edge in node.get("next_edges", ())]
    own = {key: value for key, value in node.items() if key not in {"next_edges", "saved", *PER_THREAD}}
    if "leaf" in own:
        own["leaf"] = own["leaf"].get("name")
    text = DEVICE.sub(CPU, json.dumps([own, after], sort_keys=True))
    return hashlib.sha256(text.encode()).hexdigest()


def losses_not_read(expected: Capture, found: Capture) -> Captures:
    """Leave out warnings that a loss is not finite."""
    return _without_loss_warnings(expected), _without_loss_warnings(found)


def _without_loss_warnings(capture: Capture) -> Capture:
    graph = capture["graph"]
    warnings = [warning for warning in graph["warnings"] if not NOT_FINITE.match(warning)]
    return {**capture, "graph": {**graph, "warnings": warnings}}
