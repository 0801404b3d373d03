"""Which optimizers exist, and how often each has stepped.

An optimizer that evaluates a closure, such as LBFGS, calls backward many times in one step; each of those counts.
Those that exist are searched for once, which takes long: it goes through all objects of the process. What is made or
copied afterwards is noticed.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from threading import get_ident
from types import FrameType
from typing import Any, Self
from weakref import ReferenceType, ref

from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.optimizer_names import name_of_optimizer
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.hooks import is_step_hooked, optimizer_steps
from gradinspect.torch_api.patching.noticing import noticing
from gradinspect.torch_api.patching.patches import patched
from gradinspect.torch_api.tensors import plain_tensors_only

ENOUGH = 2  # the first step makes an optimizer's state


def heard_steps(
    recorder: Recorder, before: Callable[..., None], after: Callable[..., None]
) -> AbstractContextManager[None]:
    """Listen to each step that is recorded, when it is the recorder's turn, which counts errors of listeners."""
    note, turn = recorder.errors.note, recorder.turn
    return optimizer_steps(before=before, after=after, note=note, turn=turn, is_here=recorder.records_here)


class OptimizerSteps:
    """Counts steps. Use it as a context manager, around the program."""

    def __init__(
        self,
        recorder: Recorder,
        on_step: Callable[[], None],
        may_have_stepped: Callable[[Optimizer], bool] = lambda _: False,
    ) -> None:
        """Set up.

        Args:
            recorder: Whose turn it is meanwhile.
            on_step: Called after each step.
            may_have_stepped: Whether an optimizer may have stepped where no step is seen.
        """
        self._recorder = recorder
        self._on_step = on_step
        self._may_have_stepped = may_have_stepped
        self.on_new: Callable[[FrameType | None], None] = lambda _frame: None  # called when one is made or first steps
        self._counts: dict[int, tuple[ReferenceType[Optimizer], int]] = {}
        self._stepping: dict[tuple[int, int], Optimizer] = {}  # by the thread and their ids
        self._awaited: ReferenceType[Optimizer] | None = None  # the last one that was
        self._known: dict[int, ReferenceType[Optimizer]] | None = None  # by their ids; None: not searched for yet
        self._attached = ExitStack()

    def __enter__(self) -> Self:
        """Register hooks of all optimizers, and notice new ones."""
        names = ("__init__", "__setstate__")  # the latter of those that are copied or loaded
        self._attached.enter_context(
            patched(*(noticing(Optimizer, name, self._made, self._recorder.turn) for name in names))
        )
        self._attached.enter_context(heard_steps(self._recorder, self._before, self._after))
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop noticing."""
        self._attached.close()
        self._stepping.clear()

    def called_backward(self) -> None:
        """Count a backward call inside a step."""
        here = get_ident()
        for (thread, _), optimizer in self._stepping.items():
            if thread == here:
                self._count(optimizer)

    def waits(self) -> str | None:
        """Name an optimizer that exists and has not stepped often enough."""
        last = None if self._awaited is None else self._awaited()
        optimizer = last if last is not None and self._is_awaited(last) else self._search()
        self._awaited = None if optimizer is None else ref(optimizer)
        return None if optimizer is None else f"{name_of_optimizer(optimizer)} had not stepped twice"

    def _search(self) -> Optimizer | None:
        with plain_tensors_only():
            return next(filter(self._is_awaited, self._optimizers()), None)

    def _optimizers(self) -> Iterator[Optimizer]:
        """Yield those whose steps torch reports to hooks: not a wrapper that passes its steps on to another one."""
        if self._known is None:
            self._known = {id(one): ref(one) for one in live_optimizers() if is_step_hooked(one)}
        living = (reference() for reference in tuple(self._known.values()))
        return (one for one in living if one is not None)

    def _made(self, optimizer: Any, _args: object, _kwargs: object, _result: object, frame: FrameType) -> None:
        self._recorder.errors.guard(self.on_new)(frame)
        if self._known is not None and is_step_hooked(optimizer):
            self._known[id(optimizer)] = ref(optimizer)

    def _is_awaited(self, optimizer: Optimizer) -> bool:
        is_expected = self._count_of(optimizer) < ENOUGH and _can_learn(optimizer)
        return is_expected and not self._may_have_stepped(optimizer)

    def _before(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._stepping[get_ident(), id(optimizer)] = optimizer

    def _after(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        self._stepping.pop((get_ident(), id(optimizer)), None)
        self._count(optimizer)
        if self._count_of(optimizer) == 1:
            self.on_new(sys._getframe(1))
        self._on_step()

    def _count_of(self, optimizer: Optimizer) -> int:
        kept, count = self._counts.get(id(optimizer), (None, 0))
        return count if kept is not None and kept() is optimizer else 0

    def _count(self, optimizer: Optimizer) -> None:
        self._counts[id(optimizer)] = ref(optimizer), self._count_of(optimizer) + 1


def _can_learn(optimizer: Optimizer) -> bool:
    """Return whether an optimizer holds anything that gets gradients."""
    try:
        return any(tensor.requires_grad for group in optimizer.param_groups for tensor in group["params"])
    except Exception:  # an object of the program
        return False
