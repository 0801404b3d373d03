"""The slowest nodes on a screen, and all of them as a trace."""

import json

from factories import graph, leaf, op
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gradinspect.analyses.gradients.timeline import NodeSlice, OpSlice, Timeline, slowest_first
from gradinspect.graph import Frame, ModuleCall
from gradinspect.renderers.data.graphs.chrome_trace import render_chrome_trace
from gradinspect.renderers.terminal.gradients.timeline import TimelinePage


def timeline(name: str = "w", seconds: float = 0.002) -> Timeline:
    """Two nodes; the first calls two operators, one of which calls a third."""
    record = graph(
        op("MulBackward0", 1, module=0, frame=0), leaf(name, 10),
        modules=(ModuleCall(path="fc", class_name="Linear"),), frames=(Frame(file="a.py", line=3, code="y = w * 2"),),
    )  # fmt: skip
    ops = (
        OpSlice(name="aten::mul", start_s=0.0001, seconds=0.001),
        OpSlice(name="aten::empty", start_s=0.0002, seconds=0.0001),
        OpSlice(name="aten::mul", start_s=0.0012, seconds=0.0002),
    )
    return Timeline(
        graph=record,
        slices=(
            NodeSlice(node=0, thread=0, start_s=0.0, seconds=seconds, ops=ops),
            NodeSlice(node=1, thread=0, start_s=seconds, seconds=seconds / 4),
        ),
    )


def test_the_slowest_first() -> None:
    """With the operators that the node itself called."""
    assert [line.plain for line in TimelinePage(width=72).lines(timeline(), slowest_first(timeline()), 1)] == [
        "backward #1",
        "2 nodes ran in 2.50 ms",
        "",
        "node, and the operators it ran        ms",
        "#0 MulBackward0  mul ×2            2.000  ████████████████",
        "1 more node: --full",
    ]


def test_what_the_times_are_those_of_is_said() -> None:
    """Of kernels, where the device was waited for; else of their calls."""
    waited = replace(timeline(), synchronized=("cuda:0",), unsynchronized=("other:0",))
    text = " ".join(line.plain for line in TimelinePage(width=72).lines(waited, slowest_first(waited), 1))

    assert "Each node was waited for on cuda:0, so its time includes its kernels" in " ".join(text.split())
    assert "other:0 cannot be waited for: times are those of calls, not of its kernels" in " ".join(text.split())


def test_the_trace_exactly() -> None:
    """Operators lie inside their node by time, on the same track."""
    events = json.loads(render_chrome_trace(timeline()))["traceEvents"]

    assert events[2] == {
        "ph": "X", "name": "MulBackward0", "cat": "node", "pid": 1, "tid": 0, "ts": 0.0, "dur": 2000.0,
        "args": {"node": 0, "module": "fc", "source": "a.py:3", "code": "y = w * 2", "forward_outputs": "f32[2, 3]"},
    }  # fmt: skip
    assert events[3] == {
        "ph": "X", "name": "aten::mul", "cat": "operator", "pid": 1, "tid": 0, "ts": 100.0, "dur": 1000.0,
    }  # fmt: skip
    assert [event["name"] for event in events if event["ph"] == "M"] == ["process_name", "thread_name"]
    assert events[-1]["args"]["leaf"] == "w"


@given(st.integers(50, 160), st.booleans(), st.text(max_size=60), st.floats(0, 1e4))
def test_no_line_is_wider_than_asked(width: int, unicode: bool, name: str, seconds: float) -> None:
    """Whatever the names are, and the trace is JSON."""
    found = timeline(name, seconds)
    for line in TimelinePage(width=width, unicode=unicode).lines(found, found.slices, None):
        assert line.cell_len <= width
        assert line.plain.isprintable()

    assert json.loads(render_chrome_trace(found))["displayTimeUnit"] == "ms"
