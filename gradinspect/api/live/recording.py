"""`capture` records the graph of live tensors; `record` the names, modules and lines around any code, and graphs."""

import sys
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Final, Self
from weakref import ref

from torch import nn

from gradinspect.api.live.session import LiveSession
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.observers.graphs.graphs_observer import GraphsObserver
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.frames import file_of, user_frames
from gradinspect.recording.names.variables import named_model

MOST_GRAPHS: Final = 10


class Recording:
    """What `record` has seen so far. It holds no tensor."""

    def __init__(self, model: nn.Module | None, most: int, *, label: str | None = None) -> None:
        """Prepare; `with` starts it. The label is what is recorded; by default the caller's file."""
        frame = next(user_frames(sys._getframe(1)), None)
        label = label or file_of(frame, Path.cwd())
        self._session = LiveSession(lambda run: GraphsObserver(run, most), label, named_model(model, frame))
        self._model = None if model is None else ref(model)
        self._is_used = False
        self._thread = get_ident()

    def __enter__(self) -> Self:
        """Start recording this thread.

        Raises:
            GradInspectError: It was used before.
        """
        if self._is_used:
            raise GradInspectError("This recording was used before.", "Make another one with gradinspect.record().")
        self._is_used = True
        self._thread = get_ident()
        self._session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; nothing stays patched.

        Raises:
            GradInspectError: This is not the thread where it began.
        """
        self._session.__exit__(kind, error, trace)
        self._session.run.models = ()  # holds the model
        if kind is None and get_ident() != self._thread:
            raise GradInspectError(
                "This recording was closed on another thread than the one where it began.",
                "It has ended. Use 'with gradinspect.record()' on one thread: each thread has its own function modes.",
            )

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of each `backward()` and `autograd.grad()` call so far, as it was before the call."""
        return self._session.result() or ()

    @property
    def graph(self) -> Graph:
        """The graph of the first `backward()`, or else of the first `autograd.grad()`.

        Raises:
            GradInspectError: Neither was called.
        """
        graphs = self.graphs
        if not graphs:
            raise GradInspectError(
                "No backward call with a graph was made inside the recording.",
                "Call backward() inside the with block, or use recording.capture(loss).",
            )
        return next((graph for graph in graphs if graph.captured_at.kind == "backward"), graphs[0])

    def capture(self, outputs: object) -> Graph:
        """Record the graph of live tensors that were computed inside the block, with modules and source lines.

        Args:
            outputs: A tensor, or any container of tensors.

        Raises:
            GradInspectError: No tensor in `outputs` has a graph.
        """
        model = None if self._model is None else self._model()
        return capture_graph(outputs, model=model, recorder=self._session.run.recorder)

    def __repr__(self) -> str:
        """Count what was recorded."""
        number = len(self.graphs)
        return f"<Recording of {number} graph{'' if number == 1 else 's'}>"


def record(model: nn.Module | None = None, *, most: int = MOST_GRAPHS) -> Recording:
    """Record what happens inside a `with` block: module calls, source lines, and the graph of each backward call.

    Gradients stay bit-equal, no hook of yours runs more often than without it, and nothing is patched after the block.
    It records the thread that it is used on, with what other threads compute for it. In a task of asyncio it records
    that task, and what it starts. Blocks may end in any order. One that ends on another thread, or inside
    a torch function, leaves nothing on its own thread once that has called a torch function written in Python, such as
    `backward()`.

    Args:
        model: Names the parameters, if no variable of the caller holds the model.
        most: How many graphs to keep; later backward calls are not recorded. Each takes about 1 KB per node.

    Returns:
        The recording, with `graph`, `graphs` and `capture(loss)`; also while the block runs.

    Raises:
        GradInspectError: This torch lacks what recording needs.
    """
    return Recording(model, most)


def capture(outputs: object, *, model: nn.Module | None = None) -> Graph:
    """Record the autograd graph of live tensors, such as a loss, before its backward.

    No gradient is computed, no hook runs, nothing stays patched and no tensor is kept alive. Modules and source lines
    are known only from a recording: use `record` around the forward pass, and `Recording.capture`.

    Args:
        outputs: A tensor, or a tuple, list, dict, dataclass or ModelOutput that contains some.
        model: Names the parameters, if no variable of the caller holds the model.

    Returns:
        The record of every node that backward would run, with the bytes that each holds.

    Raises:
        GradInspectError: No tensor in `outputs` has a graph.
    """
    return capture_graph(outputs, model=model)
