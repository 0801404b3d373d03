"""The bytes that a graph holds, by module and line, as a flame graph for speedscope.app.

Source: https://www.speedscope.app/file-format-schema.json
"""

from typing import TYPE_CHECKING

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Graph, frame_of, module_name, source_of
from gradinspect.renderers.data.json import json_text
from gradinspect.renderers.formats import FileContent
from gradinspect.units import escape_control

if TYPE_CHECKING:
    from gradinspect.renderers.picture.plan.parts import DrawOptions

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_file(graph: Graph, _options: "DrawOptions") -> FileContent:
    """Make a .speedscope.json file: a sample per node that holds memory, with its bytes as its weight."""
    frames: dict[tuple[str, str, int], int] = {}
    samples, weights = [], []
    for number, held in enumerate(held_bytes_by_node(graph)):
        if held:
            samples.append([frames.setdefault(frame, len(frames)) for frame in _stack(graph, number)])
            weights.append(held)
    shown = [{"name": name, **({"file": file, "line": line} if file else {})} for name, file, line in frames]
    profile = {
        "type": "sampled", "name": "held for backward", "unit": "bytes", "startValue": 0, "endValue": sum(weights),
        "samples": samples, "weights": weights,
    }  # fmt: skip
    document = {
        "$schema": _SCHEMA, "exporter": "gradinspect", "name": escape_control(graph.source), "activeProfileIndex": 0,
        "shared": {"frames": shown}, "profiles": [profile],
    }  # fmt: skip
    return FileContent(json_text(document, separators=(",", ":")).encode())


def _stack(graph: Graph, number: int) -> list[tuple[str, str, int]]:
    """Return the module calls around a node, outermost first, its line, and itself."""
    node = graph.nodes[number]
    calls: list[tuple[str, str, int]] = []
    call = node.module
    while call is not None:
        module = graph.modules[call]
        calls.append((escape_control(f"{module_name(graph, module.path)} {module.class_name}"), "", 0))
        call = module.parent
    frame = frame_of(graph, node)
    file, line = ("", 0) if frame is None else (escape_control(frame.file), frame.line)
    where = [] if frame is None else [(escape_control(source_of(graph, node) or ""), file, line)]
    return [*reversed(calls), *where, (escape_control(node.name), file, line)]
