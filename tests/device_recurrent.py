"""Rewrite two captures of one program with recurrent layers, which are fused on a device: see device_captures."""

from collections.abc import Iterator
from typing import Any

from device_captures import Capture, Captures, from_the_roots, key, next_of, ordered, renumbered, tidied

LAYER = "RecurrentLayer"
RECURRENT = {"LSTM", "GRU", "LSTMCell", "GRUCell"}


def recurrent_layers_as_nodes(expected: Capture, found: Capture) -> Captures:
    """Write all nodes of one call of a recurrent layer as one, and its second order as another."""
    return _merged(expected), _merged(found)


def _merged(capture: Capture) -> Capture:
    graph = capture["graph"]
    first: dict[tuple[int, bool], int] = {}
    places: dict[int, int] = {}
    for number, node in enumerate(graph["nodes"]):
        call = _recurrent_call(graph, node)
        places[number] = number if call is None else first.setdefault((call, "made_by" in node), number)
    layers = set(first.values())
    nodes = [_without_versions(renumbered(node, places), layers) for node in graph["nodes"]]
    for (call, _), number in first.items():
        inside = [node for node, place in zip(nodes, places.values(), strict=True) if place == number]
        nodes[number] = _layer(call, inside, number)
    merged = {**graph, "nodes": nodes, "roots": renumbered(graph["roots"], places)}
    keys: dict[int, str] = {}
    for number in reversed(from_the_roots(merged)):
        if any(target not in keys for target in next_of(nodes[number])):
            return capture  # calls that lead to one another, as in the second order
        if nodes[number]["name"] == LAYER:
            nodes[number]["next_edges"].sort(key=lambda edge: keys[edge["next_node"]])
        keys[number] = key(nodes[number], keys)
    return ordered({**capture, "graph": merged})


def _without_versions(value: Any, layers: set[int]) -> Any:
    """Leave out how often the layers have changed what they made: the fused ones do not."""
    if isinstance(value, list):
        return [_without_versions(item, layers) for item in value]
    if not isinstance(value, dict):
        return value
    is_theirs = value.get("made_by") in layers
    return {key: _without_versions(item, layers) for key, item in value.items() if key != "version" or not is_theirs}


def _layer(call: int, inside: list[Capture], number: int) -> Capture:
    """Return the node of a call: where it is, and what it leads to."""
    after = {target for node in inside for target in next_of(node) if target != number}
    edges = [{"next_node": target} for target in sorted(after)]
    lines = sorted({node["frame"] for node in inside if "frame" in node})
    saved = [{"name": "lines", "kind": "tuple", "value": lines}]
    return {"name": LAYER, "kind": "generated", "module": call, "next_edges": edges, "saved": saved}


def _recurrent_call(graph: Capture, node: Capture) -> int | None:
    """Return the call of a recurrent layer in which a node was made."""
    return next((call for call in _calls(graph, node) if graph["modules"][call]["class_name"] in RECURRENT), None)


def _calls(graph: Capture, node: Capture) -> Iterator[int]:
    call = node.get("module")
    while call is not None:
        yield call
        call = graph["modules"][call].get("parent")


def places_alone(expected: Capture, found: Capture) -> Captures:
    """Write each place where nodes were made as one node: its line, its module, and whether a backward made it."""
    return _placed(expected), _placed(found)


def _placed(capture: Capture) -> Capture:
    graph = capture["graph"]
    places = [_place(node) for node in graph["nodes"]]
    distinct = sorted(set(places))
    numbers = {number: distinct.index(place) for number, place in enumerate(places)}
    nodes: list[Capture] = [{"name": " ".join(filter(None, place[2:])), "kind": "generated"} for place in distinct]
    for node, (module, frame, *_) in zip(nodes, distinct, strict=True):
        node |= {key: value for key, value in (("module", module), ("frame", frame)) if value >= 0}
    roots = sorted(renumbered(graph["roots"], numbers), key=lambda root: str(root.get("name")))
    return tidied({**capture, "graph": {**graph, "nodes": nodes, "roots": roots}})


def _place(node: Capture) -> tuple[int, int, str, str]:
    """Return module, line, the name of a leaf, and whether a backward made it."""
    leaf = node.get("leaf", {}).get("name") or ""
    return node.get("module", -1), node.get("frame", -1), leaf, "MadeByBackward" if "made_by" in node else ""
