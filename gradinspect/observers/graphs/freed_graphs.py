"""Which backward call freed a graph.

A call is stored as the identities of the nodes that it ran: of each its thread, and its sequence number there.
"""

from collections import deque

from gradinspect.analyses.selection.node_numbers import NodeNumbers
from gradinspect.graph import Graph
from gradinspect.recording.frames import line_at, line_name
from gradinspect.recording.outputs import OutputTensor
from gradinspect.recording.threads.other_threads import OtherThreads
from gradinspect.recording.walk import Walk
from gradinspect.runner.engine import EngineCall

REMEMBERED_CALLS = 16


class FreedGraphs:
    """Stores the last calls that freed their graph."""

    def __init__(self, threads: OtherThreads) -> None:
        """Start empty."""
        self._threads = threads
        self._calls: deque[tuple[str, NodeNumbers]] = deque(maxlen=REMEMBERED_CALLS)

    def note(self, call: EngineCall) -> None:
        """Store a call that is about to start."""
        if call.keeps_graph:
            return
        walk = Walk(OutputTensor(None, output).edge[0] for output in call.outputs)
        walk.identify(self._threads)
        numbers = walk.known_numbers()
        walk.close()
        frame = call.frame
        where = "" if frame is None else f" ({line_name(frame.f_code.co_filename, line_at(frame))})"
        self._calls.append((f"{call.name}{where}", numbers))

    def warning(self, graph: Graph) -> str | None:
        """Say which call freed a saved tensor of this graph; None if nothing is freed."""
        for number, node in enumerate(graph.nodes):
            if any(value.status == "freed" for value in node.saved):
                users = [name for name, numbers in self._calls if node.identity in numbers]
                by = f"by {users[-1]}" if users else "by an earlier backward"
                return f"The saved tensors of #{number} {node.name} were freed {by}, so backward cannot run it again."
        return None
