"""Notice gradients that are held from one step into the next, and the line that clears them."""

from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, Self

from torch import nn
from torch.optim import Optimizer

from gradinspect.analyses.planning.changes import ReleaseGradients
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.recording.frames import line_record, own_frame
from gradinspect.runner.run import Run
from gradinspect.torch_api.patching.noticing import noticing
from gradinspect.torch_api.patching.patches import patched


class ZeroedGradients:
    """Watches `zero_grad` while it is active. Use it as a context manager, around the program."""

    def __init__(self, run: Run, phases: StepPhases) -> None:
        """Start empty."""
        self.release: ReleaseGradients | None = None
        self._run = run
        self._phases = phases
        self._patches = ExitStack()

    def __enter__(self) -> Self:
        """Start watching."""
        patches = [noticing(Optimizer, "zero_grad", self._note), noticing(nn.Module, "zero_grad", self._note)]
        self._patches.enter_context(patched(*patches))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._patches.close()

    def _note(
        self, _owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], _result: object, caller: FrameType
    ) -> None:
        """Note a call before backward that comes after forward has begun, or that keeps zeros."""
        keeps_zeros = kwargs.get("set_to_none", args[0] if args else True) is False
        is_late = self._phases.phase == "forward" and self._phases.num_optimizer_steps > 0
        if self.release is None and (keeps_zeros or is_late) and self._phases.phase != "backward":
            frame = own_frame(caller)
            if frame is not None:
                record = line_record(frame.f_code, frame.f_lineno, self._run.base_folder)
                self.release = ReleaseGradients(line=f"{record.file}:{record.line}", code=record.code)
