"""Training steps in which only tensors without a gradient are looked for: that takes less time than a whole check."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from gradinspect.api.live.session import LiveSession
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.cuts import GradientCuts
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.findings import Finding
from gradinspect.recording.outputs import has_graph
from gradinspect.runner.engine import CallEnd, EngineCall
from gradinspect.runner.observer import Observer
from gradinspect.runner.run import Run

Step = Callable[[], object]


def sgd(*tensors: Any) -> torch.optim.SGD:
    """Make an optimizer of tensors and models."""
    parts = [[one] if isinstance(one, torch.Tensor) else list(one.parameters()) for one in tensors]
    return torch.optim.SGD([tensor for part in parts for tensor in part], lr=0.01)


class CutsObserver(Observer[list[Finding]]):
    """Looks for tensors without a gradient."""

    def __init__(self, run: Run) -> None:
        """Look at a run."""
        self.run = run
        self.flow = Dataflow(run.recorder)
        self.cuts = GradientCuts(run.recorder, self.flow, run.base_folder)
        self.found: list[Finding] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listen."""
        with TorchCallLog(self.run.recorder, self.flow), self.cuts:
            yield

    def on_call(self, call: EngineCall) -> CallEnd | None:
        """Look at a call that is about to start."""
        if not has_graph(call.outputs):
            self.found += self.cuts.refused(call)
            return None
        walked = self.run.walk_call(call)
        assert walked is not None
        self.found += self.cuts.begin(walked, call)
        return CallEnd(lambda _returned: walked.walk.close(), walked.walk.close)

    def result(self) -> list[Finding]:
        """List what was found."""
        return [*self.found, *self.cuts.findings()]


def watched(
    make: Callable[[], Step], steps: int = 2, on_start: Callable[[GradientCuts], object] = id
) -> tuple[list[Finding], GradientCuts]:
    """Run a step, and list what was found; what was found again in another step, once."""
    torch.manual_seed(0)
    step = make()
    with LiveSession(CutsObserver, "step") as session:
        assert isinstance(session.observer, CutsObserver)
        on_start(session.observer.cuts)
        for _ in range(steps):
            with suppress(RuntimeError):  # as torch raises for what is found
                session.call(step)
    observer, found = session.observer, session.result()
    assert isinstance(observer, CutsObserver)
    return list({(one.code, one.places, one.subjects): one for one in found or ()}.values()), observer.cuts


def texts(make: Callable[[], Step], found: Sequence[Finding]) -> list[str]:
    """Show what was found: code, lines from the definition of the step, and tensors."""
    first = make().__code__.co_firstlineno
    return [
        " ".join((
            one.code,
            *(f"{place.role}={place.line - first}" for place in one.places if place.role != "optimizer"),
            *one.subjects,
        ))
        for one in found
    ]  # fmt: skip
