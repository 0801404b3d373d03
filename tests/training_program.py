"""A training loop in this process that a log listens to."""

import sys
from pathlib import Path
from typing import Any

import torch

from gradinspect.checks.evidence.training.log import TrainingLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.graph import Frame
from gradinspect.recording.capture import Moment, walk_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.magnitudes import fetched
from gradinspect.runner.engine import EngineCall

HERE = Path(__file__).parent


class Program:
    """Runs backward as a program does, and lets a log listen."""

    def __init__(self) -> None:
        recorder = Recorder()
        self.flow = Dataflow(recorder)
        self.log = TrainingLog(recorder, self.flow, HERE)
        self.recorder = recorder
        self.count = 0

    def __enter__(self) -> "Program":
        """Listen."""
        self.calls = TorchCallLog(self.recorder, self.flow)
        self.calls.on_touch = self.log.touched
        for one in (self.recorder, self.calls, self.log):
            one.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        """Judge."""
        for one in (self.log, self.calls, self.recorder):
            one.__exit__(None, None, None)
        self.flow.close()

    def backward(self, loss: torch.Tensor, **options: Any) -> None:
        """Run backward, for the line that calls this."""
        frame = sys._getframe(1)
        self.count += 1
        call = EngineCall(kind="backward", number=self.count, outputs=(loss,), frame=frame, caller=frame, **options)
        walked = walk_graph(outputs_in(loss), Moment(source="test", frame=frame), self.recorder)
        self.log.begin(walked, call)
        loss.backward(inputs=call.inputs or None, retain_graph=True)
        self.log.end()
        self.log.settle(fetched(self.log.pending))
        walked.walk.close()

    def facts(self, kind: type) -> list[Any]:
        """List the facts of a kind."""
        return [fact for fact in self.log.facts() if isinstance(fact, kind)]


def code_of(frame: Frame | None) -> str | None:
    """Return the text of a line."""
    return None if frame is None else frame.code
