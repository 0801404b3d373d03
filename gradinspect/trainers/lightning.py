"""A callback for Lightning: `Trainer(callbacks=[GradInspectCallback()])`."""

import os
from typing import Any

from lightning.pytorch.callbacks import Callback

from gradinspect.trainers.watching import TrainingWatch


class GradInspectCallback(Callback):
    """Checks the first batches, and records the graph of one.

    `watch.findings` and `watch.graph` have what was seen.
    """

    def __init__(
        self, *, checks: bool = True, capture_step: int | None = None, save_to: str | os.PathLike[str] | None = None
    ) -> None:
        """Choose what to do; see `TrainingWatch`."""
        super().__init__()
        self.watch = TrainingWatch(checks=checks, capture_step=capture_step, save_to=save_to)

    def on_train_start(self, _trainer: Any, pl_module: Any) -> None:
        """Start checking."""
        self.watch.training_begins(type(pl_module).__name__)

    def on_train_batch_start(self, *_event: Any) -> None:
        """Start a step."""
        self.watch.step_begins()

    def on_train_batch_end(self, *_event: Any) -> None:
        """End a step."""
        self.watch.step_ends()

    def on_train_end(self, *_event: Any) -> None:
        """Stop."""
        self.watch.training_ends()

    def on_exception(self, *_event: Any) -> None:
        """Stop after an error."""
        self.watch.training_ends()
