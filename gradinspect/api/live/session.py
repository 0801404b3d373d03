"""Let an observer look at the backward calls of a process that called us, and leave it as it was."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, Self, TypeVar

from gradinspect.recording.names.instances import freezes_noted
from gradinspect.recording.names.variables import Variable
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency.release import release_wrappers
from gradinspect.recording.transparency.transparency import stack_patches
from gradinspect.request import Request
from gradinspect.runner.engine import EngineInterceptor
from gradinspect.runner.observed_calls import ObservedCalls
from gradinspect.runner.observer import MakeObserver
from gradinspect.runner.process_state import SharedState
from gradinspect.runner.program_handlers import waiting_handlers
from gradinspect.runner.run import Run
from gradinspect.runner.stopping import Stopper
from gradinspect.source import Script
from gradinspect.torch_api.modes import modes_end_themselves
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.probes import require_essentials
from gradinspect.torch_api.weak import hidden_refs_patch

T = TypeVar("T")
R = TypeVar("R")


class LiveSession(Generic[T]):
    """Observes what runs while it is active. Use it as a context manager; nothing is patched afterwards."""

    def __init__(self, make_observer: MakeObserver[T], label: str, models: tuple[Variable, ...] = ()) -> None:
        """Prepare.

        Args:
            make_observer: Makes the observer of the backward calls.
            label: What is observed, as reports call it.
            models: What the caller has named.
        """
        require_essentials()
        source = Script(Path(label))
        calls = ObservedCalls()
        self.run = Run(
            program=source,
            base_folder=Path.cwd(),
            request=Request(source=source, label=label, goes_on=True),
            recorder=Recorder(all_threads=False),
            process_state=SharedState(),
            interceptor=EngineInterceptor(calls.take, all_threads=False, on_missed=calls.missed),
            stopper=Stopper(),
            models=models,
        )
        self.run.interceptor.recorder = self.run.recorder
        self.observer = make_observer(self.run)
        calls.begin(self.run, self.observer)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start observing."""
        with ExitStack() as stack:
            stack.enter_context(waiting_handlers())
            stack.enter_context(self.run.interceptor)
            stack.enter_context(patched(*stack_patches(), hidden_refs_patch(), freezes_noted(), modes_end_themselves()))
            stack.enter_context(self.run.recorder)
            stack.enter_context(self.observer.attached())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Stop observing."""
        self.run.has_failed = self.run.has_failed or kind is not None
        self._stack.close()
        self.run.recorder.drop_tensors()
        release_wrappers()

    def call(self, function: Callable[[], R]) -> R:
        """Call the caller's code; its lines are those from here inward."""
        return function()

    def result(self) -> T | None:
        """Return what was seen; None if nothing was.

        Raises:
            Exception: An error of ours, which was kept from the observed code.
        """
        self.observer.settle()
        problem = self.run.problem or self.run.interceptor.problem or self.observer.problem
        if problem is not None:
            raise problem
        return self.observer.result()
