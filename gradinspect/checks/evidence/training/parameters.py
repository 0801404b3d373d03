"""What a program does to its parameters beside training them, as facts for the rules.

Freezing that has no effect or not the whole one, two parameters in one memory, hooks that become more. The log of the
training loop calls it with what it sees.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FrameType

import torch
from torch import nn
from torch.optim import Optimizer

from gradinspect.checks.evidence.in_place.equal_rows import EqualRows, EqualRowsLog
from gradinspect.checks.evidence.in_place.lost_updates import LostUpdateLog
from gradinspect.checks.evidence.in_place.moving_frozen import Moved, MovingFrozen
from gradinspect.checks.evidence.in_place.unmoved import UnmovedLog
from gradinspect.checks.evidence.training.flags import (
    FlagLine,
    FoundFlag,
    flags_of_modules,
    flags_of_tensors,
    line_of_flag,
    unfreezing_flags,
)
from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.evidence.training.hook_effects import Effect, Effects, HookEffects
from gradinspect.checks.evidence.training.memory_twice import NUM_STEPS, MemoryTwice
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.piled_hooks import PiledHooks, piles_by_line
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.facts.training import (
    EqualUnits,
    HookPile,
    IneffectiveFlag,
    MovedFrozen,
    SpoilingHook,
    TwoInOneMemory,
)
from gradinspect.graph import Frame
from gradinspect.recording.capture import WalkedGraph
from gradinspect.recording.frames import is_user_file, source_line
from gradinspect.recording.names.names import all_parameters, named_modules
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.magnitudes import PendingFigures
from gradinspect.torch_api.modules import own_parameters
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.originals import ops

NUM_BACKWARDS = 2  # in which flags are looked for
Leaves = Sequence[tuple[torch.Tensor, str]]  # with their names


class ParameterLog:
    """Tracks what is odd about parameters."""

    def __init__(
        self, recorder: Recorder, folder: Path, gradients: GradientUse, registrations: Registrations,
        frozen_at: dict[int, int | None],
    ) -> None:  # fmt: skip
        """Set up.

        Args:
            recorder: Has the frames.
            folder: Files below it are named relative to it.
            gradients: Knows which parameters were reached.
            registrations: Knows when they became part of a model.
            frozen_at: The frames that froze parameters, by their ids.
        """
        self._recorder = recorder
        self._folder = folder
        self._gradients = gradients
        self.set_at: Callable[[torch.Tensor], int | None] = lambda _: None  # the frame that gave it its first values
        self._memory = MemoryTwice(registrations, gradients)
        self._frozen = MovingFrozen(gradients, frozen_at)
        self._hooks = PiledHooks()
        self.effects = HookEffects(recorder)
        self.unmoved = UnmovedLog()
        self.lost = LostUpdateLog()
        self._equal = EqualRowsLog()
        self._num_looked: dict[frozenset[int], int] = {}  # calls, by the models that had been called by then
        self._flags: dict[tuple[str, str | None], tuple[FoundFlag, int | None]] = {}  # with the line of backward

    def begin(self, walked: WalkedGraph, leaves: Leaves, roots: Sequence[nn.Module], backward: int | None) -> None:
        """Look at a backward call that is about to start.

        Args:
            walked: Its graph.
            leaves: What it will reach.
            roots: The models that were called.
            backward: Its frame.
        """
        models = frozenset(map(id, roots))
        self._num_looked[models] = self._num_looked.get(models, 0) + 1
        if self._num_looked[models] <= NUM_BACKWARDS:
            for flag in (*flags_of_tensors(leaves), *flags_of_modules(roots, leaves)):
                self._flags.setdefault((flag.attribute, flag.module), (flag, backward))
        self._hooks.begin(leaves, roots, backward)
        self.effects.begin(walked, backward)
        self.unmoved.begin(leaves, backward)
        self._equal.begin(leaves, backward)

    @property
    def pending(self) -> list[PendingFigures]:
        """What hooks have done to gradients, and what parameters are, still on their devices."""
        return [*self.effects.pending, *self.unmoved.pending, *self._equal.pending]

    def settle(self, rows: Sequence[Sequence[Sequence[float]]]) -> None:
        """Take what was fetched of that."""
        answers = iter(rows)
        for log in (self.effects, self.unmoved, self._equal):
            log.settle(list(islice(answers, len(log.pending))))

    def hooked(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that a tensor has got a hook."""
        self.effects.registered(tensor, frame)

    def data_set(self, tensor: torch.Tensor, frame: FrameType | None) -> None:
        """Note that `.data` of a tensor was set, unless torch itself does so, as in `module.to()`."""
        if frame is not None and is_user_file(frame.f_code.co_filename):
            self._memory.assigned(tensor, self._recorder.frames.number_of(frame))

    def assigned_at(self, tensor: torch.Tensor) -> int | None:
        """Return the frame that let a parameter have the memory of a tensor, by setting `.data`."""
        return self._memory.assigned_at(tensor)

    def before_step(self, optimizer: Optimizer, one: SeenOptimizer) -> None:
        """Look at what a step is about to change."""
        self._frozen.before_step(optimizer)
        self.unmoved.before_step(optimizer, one)
        self.lost.before_step(optimizer, one)
        if one.num_steps < NUM_STEPS:
            self._memory.before_step(optimizer, one.step)

    def after_step(self, optimizer: Optimizer, one: SeenOptimizer) -> None:
        """Look at what a step has changed."""
        self._frozen.after_step(optimizer, one)
        self.unmoved.after_step(optimizer)
        self.lost.after_step(one)

    def waits(self) -> str | None:
        """Say what the next call may show."""
        return self._hooks.waits() or self.unmoved.waits()

    def facts(self, held: Collection[int]) -> Iterator[object]:
        """Yield what is to be judged, after the end.

        Args:
            held: The ids of the parameters that optimizers hold.
        """
        for flag in unfreezing_flags(list(self._recorder.called_modules())):
            self._flags.setdefault((flag.attribute, flag.module), (flag, self._gradients.backward))
        yield from self._ineffective_flags()
        for pair in self._memory.pairs():
            names = [one.name for one in self._gradients.of((pair.first, pair.second))]
            yield TwoInOneMemory(
                first=names[0] or "one parameter", second=names[-1] or "another",
                is_same_shape=_is_same_shape(pair.first, pair.second),
                made=self._frame(pair.made), step=self._frame(pair.step),
            )  # fmt: skip
        yield from self._moved()
        for line, piles in piles_by_line(self._hooks.found()):
            yield HookPile(
                kind=piles[0].kind, names=tuple(dict.fromkeys(pile.name for pile in piles)),
                count=max(pile.count for pile in piles), registered=source_line(line.file, line.line, self._folder),
                backward=self._frame(piles[0].backward),
            )  # fmt: skip

        yield from self._spoiling_hooks(held)
        yield from self._equal_units()

    def _equal_units(self) -> Iterator[EqualUnits]:
        """Yield the weights of models whose units are all the same, those of one line together."""
        owned = {id(one) for root in self._recorder.called_modules() for one in all_parameters(root)}
        by_line: dict[int | None, list[EqualRows]] = {}
        for one in self._equal.found():
            tensor = one.tensor()
            if tensor is not None and one.key in owned:
                by_line.setdefault(self.set_at(tensor), []).append(one)
        for frame, some in by_line.items():
            yield EqualUnits(
                names=tuple(dict.fromkeys(one.name or "a weight" for one in some)),
                num_rows=max(one.num_rows for one in some), num_steps=min(one.num_steps for one in some),
                set=self._frame(frame), backward=self._frame(some[0].backward),
            )  # fmt: skip

    def _spoiling_hooks(self, held: Collection[int]) -> Iterator[SpoilingHook]:
        """Yield the hooks that zero what is to be trained, or reverse the gradients of a layer of torch.

        A sign that is reversed elsewhere is meant to be, as for a Lagrange multiplier or between two adversaries.
        """
        spoiled: dict[Effect, Collection[int]] = {
            "zeroed": held, "reversed": set(map(id, self._parameters_of_layers())),
        }  # fmt: skip
        by_line: dict[tuple[int | None, Effect], list[tuple[Effects, torch.Tensor | None]]] = {}
        for effect, one in self.effects.found():
            leaf = None if one.leaf is None else one.leaf()
            is_meant = effect == "reversed" if one.leaf is None else id(leaf) not in spoiled[effect]
            if not is_meant:
                by_line.setdefault((one.frame, effect), []).append((one, leaf))
        for (frame, effect), some in by_line.items():
            names = tuple(one.name for one in self._gradients.of(leaf for _, leaf in some if leaf is not None))
            yield SpoilingHook(
                effect=effect, names=names, registered=self._frame(frame), backward=self._frame(some[0][0].backward)
            )

    def _parameters_of_layers(self) -> Iterator[torch.Tensor]:
        for root in self._recorder.called_modules():
            for _, module in named_modules(root):
                if module_of(type(module)).startswith("torch.nn."):
                    yield from (one for one in own_parameters(module).values() if one is not None)

    def _ineffective_flags(self) -> Iterator[IneffectiveFlag]:
        by_line: dict[FlagLine, list[tuple[FoundFlag, int | None]]] = {}
        for flag, backward in self._flags.values():
            line = line_of_flag(flag)
            if line is not None:  # otherwise an installed package has set it
                by_line.setdefault(line, []).append((flag, backward))
        for line, found in by_line.items():
            flags = [flag for flag, _ in found]
            yield IneffectiveFlag(
                attribute=flags[0].attribute, target=line.target,
                names=tuple(dict.fromkeys(name for flag in flags for name in flag.names)),
                modules=tuple(flag.module for flag in flags if flag.module is not None),
                set=source_line(line.file, line.line, self._folder), backward=self._frame(found[0][1]),
                unfreezes=flags[0].unfreezes,
            )  # fmt: skip

    def _moved(self) -> Iterator[MovedFrozen]:
        by_cause: dict[tuple[int | None, int | None, str], list[Moved]] = {}
        for moved in self._frozen.found.values():
            by_cause.setdefault((moved.frozen, moved.step, moved.optimizer), []).append(moved)
        for (frozen, step, optimizer), found in by_cause.items():
            names = tuple(dict.fromkeys(one.name or "a parameter" for one in found))
            yield MovedFrozen(optimizer=optimizer, names=names, frozen=self._frame(frozen), step=self._frame(step))

    def _frame(self, number: int | None) -> Frame | None:
        return self._recorder.frames.record(number, self._folder)


def _is_same_shape(first: torch.Tensor, second: torch.Tensor) -> bool:
    return bool(first.shape == second.shape and ops.stride(first) == ops.stride(second))
