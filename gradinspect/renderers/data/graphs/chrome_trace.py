"""A timeline as a trace for Perfetto and chrome://tracing: nodes on a track, their operators below.

What comes in: a `Timeline`. What goes out: JSON. The format is Chrome's Trace Event Format: complete events (`ph` X),
times in microseconds.
"""

from collections.abc import Iterator

from gradinspect.analyses.gradients.timeline import NodeSlice, Timeline
from gradinspect.analyses.summary import describe_capture
from gradinspect.graph import Graph, frame_of, source_of
from gradinspect.renderers.data.json import json_text
from gradinspect.units import format_tensor

PROCESS = 1


def render_chrome_trace(timeline: Timeline) -> str:
    """Write a trace, one event per line."""
    lines = ",\n".join(json_text(event) for event in _events(timeline))
    return f'{{"displayTimeUnit":"ms","traceEvents":[\n{lines}\n]}}\n'


def _events(timeline: Timeline) -> Iterator[dict[str, object]]:
    yield _name("process_name", 0, describe_capture(timeline.graph))
    for thread in sorted({piece.thread for piece in timeline.slices}):
        yield _name("thread_name", thread, f"backward, thread {thread}")
    for piece in timeline.slices:
        yield _event(timeline.graph.nodes[piece.node].name, "node", piece.thread, piece.start_s, piece.seconds) | {
            "args": _arguments(timeline.graph, piece)
        }
        for op in piece.ops:
            yield _event(op.name, "operator", piece.thread, op.start_s, op.seconds)


def _name(kind: str, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": PROCESS, "tid": thread, "args": {"name": name}}


def _event(name: str, category: str, thread: int, start_s: float, seconds: float) -> dict[str, object]:
    return {
        "ph": "X", "name": name, "cat": category, "pid": PROCESS, "tid": thread,
        "ts": round(start_s * 1e6, 3), "dur": round(seconds * 1e6, 3),
    }  # fmt: skip


def _arguments(graph: Graph, piece: NodeSlice) -> dict[str, object]:
    node = graph.nodes[piece.node]
    outputs = [format_tensor(info) for info in node.forward_outputs if info is not None]
    frame = frame_of(graph, node)
    facts: dict[str, object] = {
        "node": piece.node,
        "module": None if node.module is None else graph.modules[node.module].path,
        "leaf": None if node.leaf is None else node.leaf.name,
        "source": source_of(graph, node),
        "code": None if frame is None else frame.code,
        "forward_outputs": ", ".join(outputs),
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}
