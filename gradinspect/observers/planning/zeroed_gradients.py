"""Notice gradients that are held from one step into the next, the line that clears them, and who takes turns.

NOTE [What is cleared for another reason]
A generator's backward call leaves gradients in the discriminator, which the discriminator's `zero_grad` discards before
its own call. Right after its step they are not there yet, so it cannot move there. So it is wherever a backward call
comes between the step of an optimizer and its `zero_grad`.

Where optimizers step after backward calls of their own, as those of a GAN do, this `zero_grad` would come only after
several smaller batches: what was added to the other one's gradients is still there, so these would be others.
"""

from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, Self

from torch import nn
from torch.optim import Optimizer

from gradinspect.analyses.planning.changes import ReleaseGradients
from gradinspect.observers.memory.step_phases import StepPhases
from gradinspect.recording.frames import line_at, line_record, own_frame
from gradinspect.runner.run import Run
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patching.noticing import noticing
from gradinspect.torch_api.patching.patches import patched


class ZeroedGradients:
    """Watches `zero_grad` while it is active. Use it as a context manager, around the program."""

    def __init__(self, run: Run, phases: StepPhases) -> None:
        """Start empty."""
        self._release: ReleaseGradients | None = None
        self._num_backwards = 0
        self._stepped_at: dict[int, int] = {}  # id of an optimizer -> backward calls before its last step
        self._stepped: set[int] = set()  # ids of optimizers, since the last call
        self._together: set[frozenset[int]] = set()
        self._discards = False  # what other calls have left: NOTE [What is cleared for another reason]
        self._run = run
        self._phases = phases
        self._patches = ExitStack()

    @property
    def release(self) -> ReleaseGradients | None:
        """The line that could clear them earlier; None if there is none, or it discards what other calls have left."""
        return None if self._discards else self._release

    @property
    def alternates(self) -> bool:
        """Whether two optimizers never step after the same call."""
        together = {*self._together, *((frozenset(self._stepped),) if self._stepped else ())}
        return any(one.isdisjoint(other) for one in together for other in together)

    def backward(self, *, adds: bool = True) -> None:
        """Note that a backward call begins, or one of `autograd.grad`, which adds nothing to gradients."""
        self._num_backwards += adds
        if self._stepped:
            self._together.add(frozenset(self._stepped))
            self._stepped.clear()

    @uncompiled
    def step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        """Note that an optimizer is about to step."""
        self._stepped_at[id(optimizer)] = self._num_backwards
        self._stepped.add(id(optimizer))

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
        self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], _result: object, caller: FrameType
    ) -> None:
        """Note a call before backward that comes after forward has begun, or that keeps zeros."""
        last = max(self._stepped_at.values(), default=None)
        stepped_at = self._stepped_at.get(id(owner)) if issubclass(type(owner), Optimizer) else last
        self._discards = self._discards or stepped_at not in {None, self._num_backwards}
        keeps_zeros = kwargs.get("set_to_none", args[0] if args else True) is False
        is_late = self._phases.phase == "forward" and self._phases.num_optimizer_steps > 0
        if self._release is None and (keeps_zeros or is_late) and self._phases.phase != "backward":
            frame = own_frame(caller)
            if frame is not None:
                record = line_record(frame.f_code, line_at(frame), self._run.base_folder)
                self._release = ReleaseGradients(line=f"{record.file}:{record.line}", code=record.code)
