"""A callback for the Trainer of transformers: `Trainer(..., callbacks=[GradInspectCallback()])`."""

import os
from typing import Any

from transformers import TrainerCallback

from gradinspect.trainers.watching import TrainingWatch


class GradInspectCallback(TrainerCallback):
    """Checks the first steps, and records the graph of one.

    `watch.findings` and `watch.graph` have what was seen.
    """

    def __init__(
        self, *, checks: bool = True, capture_step: int | None = None, save_to: str | os.PathLike[str] | None = None
    ) -> None:
        """Choose what to do; see `TrainingWatch`."""
        self.watch = TrainingWatch(checks=checks, capture_step=capture_step, save_to=save_to)

    def on_train_begin(self, _args: Any, _state: Any, _control: Any, **given: Any) -> None:
        """Start checking."""
        self.watch.training_begins(type(given.get("model")).__name__)

    def on_step_begin(self, _args: Any, _state: Any, _control: Any, **_given: Any) -> None:
        """Start a step."""
        self.watch.step_begins()

    def on_step_end(self, _args: Any, _state: Any, _control: Any, **_given: Any) -> None:
        """End a step."""
        self.watch.step_ends()

    def on_train_end(self, _args: Any, _state: Any, _control: Any, **_given: Any) -> None:
        """Stop."""
        self.watch.training_ends()
