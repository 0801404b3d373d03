"""Everything that is recorded of a program while it runs, for the rules to judge."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from gradinspect.checks.evidence.custom_functions.functions import CustomFunctions
from gradinspect.checks.evidence.kept_graphs.dropped_losses import DroppedLosses
from gradinspect.checks.evidence.kept_graphs.unused_graphs import UnusedGraphs
from gradinspect.checks.evidence.lines.batches_read_once import ReadOnceLog
from gradinspect.checks.evidence.ranks import ranks_of_this_run
from gradinspect.checks.evidence.recomputation import CheckpointRuns
from gradinspect.checks.evidence.training.log import TrainingLog
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.cuts import GradientCuts
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.graph import CallKind, Frame
from gradinspect.recording.frames import source_line
from gradinspect.runner.run import Run


class ProgramLogs:
    """The logs of one run, which know of each other."""

    def __init__(self, run: Run, *, gradcheck: bool, needs_values: bool) -> None:
        """Make all of them.

        Args:
            run: The run.
            gradcheck: Whether to check the custom Functions in full.
            needs_values: Whether the values of gradients at all nodes, and of results, are read.
        """
        recorder = run.recorder
        self.recorder = recorder
        self.folder: Path = run.base_folder
        self.flow = Dataflow(recorder)
        self.needs_values = needs_values
        self.calls = TorchCallLog(recorder, self.flow)
        if not needs_values:
            self.calls.states.looks_at_nothing()
        self.checkpoints = CheckpointRuns(self.folder)
        self.ranks = ranks_of_this_run()
        self.custom = CustomFunctions(self.folder, in_full=gradcheck)
        self.cuts = GradientCuts(recorder, self.flow, self.folder)
        self.training = TrainingLog(recorder, self.flow, self.folder)
        self.calls.on_touch = self.training.touched
        self.cuts.created = self.training.created
        self.calls.arguments.twins.names_of = self.training.names_of
        self.calls.arguments.evaluations.is_meant = self.training.modes.is_set
        self.calls.arguments.evaluations.has_stepped = self.training.has_stepped
        self.calls.arguments.pixels.line_in = lambda file, line: source_line(file, line, self.folder)
        self.calls.arguments.draws.line_in = self.calls.arguments.pixels.line_in
        self.training.knows_writes(self.calls.writes.last_frame_by_program)
        self.unused = UnusedGraphs(self.folder, self.cuts.reached, recorder.others)
        self.losses = DroppedLosses(self.flow, recorder.frames)
        self.read_once = ReadOnceLog(self.folder)

    @property
    def hid_anything(self) -> bool:
        """Whether more was called than is recorded, or ran where nothing is recorded, or on a rank that was not met."""
        is_rank_missing = self.ranks is not None and bool(self.ranks.missing)
        return not self.cuts.saw_all or is_rank_missing or bool(self.training.compiled_lines())

    def listeners(self) -> Sequence[AbstractContextManager[Any]]:
        """List those that listen while the program runs, in the order in which they begin."""
        return (self.calls, self.cuts, self.training, self.checkpoints, self.custom)

    def rest(self) -> bool:
        """Note nothing but what may be new, unless something is found that a call would have to confirm."""
        if not self.unused.rest():
            return False
        self.calls.is_resting = self.calls.writes.steps.is_resting = True
        self.cuts.rest()
        self.training.is_resting = True
        return True

    def wake(self) -> None:
        """Note everything again, and trust nothing that may have changed meanwhile."""
        self.calls.is_resting = self.calls.writes.steps.is_resting = False
        self.cuts.wake()
        self.training.wake()
        self.unused.wake()
        self.losses.wake()
        self.checkpoints.take()

    def unobserved(self, kind: CallKind) -> None:
        """Note a call that is not looked at."""
        self.training.unobserved(kind)
        self.cuts.unobserved()

    def frame(self, number: int | None) -> Frame | None:
        """Return the record of a frame."""
        return self.recorder.frames.record(number, self.folder)
