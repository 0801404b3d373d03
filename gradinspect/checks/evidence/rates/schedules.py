"""All that is noted of the steps of schedulers, apart from the learning rates that they leave."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias
from weakref import ReferenceType, ref

from torch.optim import lr_scheduler

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.lines.made_objects import Origins
from gradinspect.checks.evidence.rates.paces import SCHEDULES, PaceLog
from gradinspect.checks.evidence.rates.plateaus import PlateauLog
from gradinspect.checks.evidence.rates.scheduler_sources import MadeScheduler, made_scheduler
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.facts.rates import OtherPace, PlateauOfBatches, ProgressRefused
from gradinspect.graph import Frame
from gradinspect.recording.frames import FrameTable, line_at, own_frame, source_line
from gradinspect.torch_api.patching.classes import module_of

_Key: TypeAlias = tuple[ReferenceType[Any], int | None]  # a scheduler, and the frame that steps it


class ScheduleLog:
    """Listens to the steps of schedulers."""

    def __init__(self, origins: Origins, frames: FrameTable, folder: Path) -> None:
        """Share the lines that made schedulers, and those of frames; files are named relative to the folder."""
        self._origins = origins
        self._frames = frames
        self._made: dict[_Key, int | None] = {}  # the frames that made them
        self._folder = folder
        self._plateaus: dict[_Key, PlateauLog] = {}
        self._paces: dict[_Key, PaceLog] = {}
        self._names: dict[_Key, str] = {}  # of their optimizers

    def note(self, scheduler: Any, one: SeenOptimizer, args: tuple[Any, ...], kwargs: dict[str, Any],
             frame: FrameType) -> None:  # fmt: skip
        """Note a step, unless another scheduler makes it."""
        number = self._frames.number_of(frame)
        caller = own_frame(frame)
        if caller is None:
            return
        key, file, line = (ref(scheduler), number), caller.f_code.co_filename, line_at(caller)
        self._made[key] = self._origins.of(scheduler)
        if type(scheduler) is lr_scheduler.ReduceLROnPlateau:
            self._names[key] = one.name
            log = self._plateaus.setdefault(key, PlateauLog(file, line, number))
            log.note(scheduler, argument(args, kwargs, 0, "metrics"), one.num_steps)
        elif _name(scheduler) in SCHEDULES and one.num_steps:
            self._names[key] = one.name
            self._paces.setdefault(key, PaceLog(file, line, scheduled=number)).note(scheduler, one.num_steps, caller)

    def facts(
        self, frame_of: Callable[[int | None], Frame | None]
    ) -> Iterator[ProgressRefused | OtherPace | PlateauOfBatches]:
        """Yield the schedulers that were given the wrong number, or stepped too often."""
        for key, log in self._plateaus.items():
            metric = log.refused()
            made = None if metric is None else made_scheduler("ReduceLROnPlateau")
            if metric is not None and log.first is not None:
                yield ProgressRefused(
                    mode="max" if log.mode == "max" else "min", metric=metric, num_records=log.num_records,
                    first=log.first, last=log.record, optimizer=self._names[key],
                    scheduled=frame_of(log.scheduled), made=frame_of(self._made[key]) or self._line(made),
                )  # fmt: skip
            loss = log.batch_loss()
            if loss is not None:
                yield PlateauOfBatches(
                    loss=loss, patience=log.patience, num_told=log.num_told, optimizer=self._names[key],
                    scheduled=frame_of(log.scheduled),
                    made=frame_of(self._made[key]) or self._line(made_scheduler("ReduceLROnPlateau")),
                )  # fmt: skip
        for key, pace in self._paces.items():
            found = pace.other()
            if found is not None:
                yield OtherPace(
                    counts=found.counts, scheduler=pace.name, length=pace.length, given=found.given,
                    num_scheduled=pace.num_scheduled, num_steps=pace.num_steps, optimizer=self._names[key],
                    scheduled=frame_of(pace.scheduled), made=frame_of(self._made[key]) or self._line(found.made),
                    num_epochs=0 if found.loop is None else found.loop.num_passes,
                    epoch=0 if found.loop is None else found.loop.current,
                    loop=None if found.loop is None else source_line(found.loop.file, found.loop.line, self._folder),
                )  # fmt: skip

    def _line(self, made: MadeScheduler | None) -> Frame | None:
        return None if made is None else source_line(made.file, made.call.lineno, self._folder)


def _name(scheduler: Any) -> str:
    """Return the class of a scheduler of torch."""
    kind = type(scheduler)
    return kind.__name__ if module_of(kind) == lr_scheduler.__name__ else ""
