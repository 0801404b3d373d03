"""What schedulers are told, and how often they are stepped."""

import ast
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR, OneCycleLR, ReduceLROnPlateau, StepLR

from gradinspect.checks.evidence.rates import paces, plateaus
from gradinspect.checks.evidence.rates.epoch_loops import EpochLoop, epoch_loop
from gradinspect.checks.evidence.rates.paces import PaceLog
from gradinspect.checks.evidence.rates.plateaus import PlateauLog
from gradinspect.checks.evidence.rates.scheduler_sources import MadeScheduler, direction, numbers_of_loops, told_at


def optimizer() -> SGD:
    """Make one."""
    return SGD(nn.Linear(2, 1).parameters(), lr=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("val_loss", "falls"),
        ("valLoss.item()", "falls"),
        ("metrics['val_acc']", "rises"),
        ("history['loss'][-1]", "falls"),
        ("total_loss / len(loader)", "falls"),
        ("np.mean(losses)", "falls"),
        ("float(self.accuracy)", "rises"),
        ("evaluate_accuracy(model)", "rises"),
        ("dice_loss", "falls"),  # though a dice rises
        ("-val_loss", None),
        ("1 - accuracy", None),
        ("score", None),
        ("known", "falls"),
        ("twice", None),
    ],
)
def test_a_name_says_which_way_a_number_goes(tmp_path: Path, text: str, expected: str | None) -> None:
    """Of what is negated it says nothing, and of a variable what is assigned to it."""
    file = tmp_path / "train.py"
    file.write_text(f"known = cross_entropy(x, y)\nfirst, twice = evaluate(model)\nscheduler.step({text})\n")
    given = told_at(str(file), 3)

    assert given is not None
    assert direction(str(file), given) == expected
    assert told_at(str(file), 1) is None


SOURCE = """
measure = nn.MSELoss()
twice = first()
twice = second()
def evaluate(model):
    total = 0.0
    for x, y in batches:
        total += measure(model(x), y).item() * len(x)
    return total / len(batches)
def right(model):
    correct = 0
    return correct / 9
def several(model):
    return total, correct
def turned(model):
    total = 0.0
    total -= measure(model(x), y)
    return total
def here(model):
    value = measure(model(x), y)
    scheduler.step(value.item())
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("evaluate(model)", "falls"),
        ("measure(model(x), y).item()", "falls"),
        ("right(model)", "rises"),
        ("several(model)", None),
        ("turned(model)", None),
        ("-evaluate(model)", None),
        ("evaluate(model) * -1", None),
        ("twice(model)", None),
        ("elsewhere(model)", None),
    ],
)
def test_what_a_number_is_made_of_says_so_as_well(tmp_path: Path, text: str, expected: str | None) -> None:
    """A loss that is called, what a function returns, and what is added to its sum."""
    file = tmp_path / "train.py"
    file.write_text(f"{SOURCE}value = {text}\nscheduler.step(value)\n")
    line = len(file.read_text().splitlines())
    given, inside = told_at(str(file), line), told_at(str(file), line - 2)

    assert given is not None
    assert inside is not None
    assert direction(str(file), given) == expected
    assert direction(str(file), inside) == "falls"


def refused(monkeypatch: pytest.MonkeyPatch, mode: Any, values: list[Any], name: str, **options: Any) -> str | None:
    """Tell a scheduler some numbers, and return the name of what was refused."""
    scheduler, log = ReduceLROnPlateau(optimizer(), mode, **options), PlateauLog("train.py", 3)
    monkeypatch.setattr(plateaus, "told_at", lambda _file, _line: ast.Name(id=name))
    monkeypatch.setattr(plateaus, "direction", lambda _file, given: "falls" if given.id == "loss" else "rises")
    for number, value in enumerate(values):
        scheduler.step(value)
        log.note(scheduler, value, number)
    return log.refused()


@pytest.mark.parametrize(
    ("mode", "values", "name", "expected"),
    [
        ("max", [1.0, 0.9, 0.8, 0.7], "loss", "loss"),
        ("max", [torch.tensor(one) for one in (1.0, 0.9, 0.8, 0.7)], "loss", "loss"),
        ("min", [0.5, 0.6, 0.7, 0.8], "accuracy", "accuracy"),
        ("min", [0.5, 0.6, 0.7, 0.8], "loss", None),  # a model that overfits
        ("max", [0.9, 0.8, 0.7, 0.6], "accuracy", None),
        ("min", [1.0, 0.9, 0.8, 0.7], "loss", None),
        ("max", [1.0, 0.9, 0.8], "loss", None),  # too few
        ("max", [1.0, 0.999, 0.998, 0.997, 0.996], "loss", None),  # next to no change
        ("max", [1.0, 0.9, 1.1, 0.8, 1.2, 0.7], "loss", None),  # taken as well
        ("max", [float("nan")] * 9, "loss", None),
        ("max", [torch.ones(1, 1) - one / 9 for one in range(5)], "loss", "loss"),
    ],
)
def test_progress_is_refused_in_the_wrong_mode(
    monkeypatch: pytest.MonkeyPatch, mode: str, values: list[Any], name: str, expected: str | None
) -> None:
    """Where the name says that the number moved as it should."""
    assert refused(monkeypatch, mode, values, name) == expected


def test_a_large_threshold_may_refuse_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the right mode as well."""
    assert refused(monkeypatch, "max", [1.0, 0.9, 0.8, 0.7], "loss", threshold=0.2) is None


def pace(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
    make: Callable[[SGD], Any],
    gaps: list[int],
    line: int = 3,
) -> str | None:
    """Step a scheduler after so many steps of its optimizer each time, and return what it is said to count."""
    file = tmp_path / "train.py"
    file.write_text(f"total = epochs * len(loader)\nscheduler = {text}\nfor epoch in range(1, epochs + 1): pass\n"
                    "for batch in loader: scheduler.step()\n")  # fmt: skip
    call = next(one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.Call) and one.lineno == 2)
    scheduler: Any = make(optimizer())
    monkeypatch.setattr(paces, "made_scheduler", lambda name: MadeScheduler(str(file), call, name))
    log, count = PaceLog(str(file), line), 0
    for gap in gaps:
        count += gap
        log.note(scheduler, count, sys._getframe())
    found = log.other()
    return None if found is None else f"{found.counts}: {found.given}"


@pytest.mark.parametrize(
    ("text", "make", "gaps", "expected"),
    [
        ("CosineAnnealingLR(o, T_max=epochs)", lambda one: CosineAnnealingLR(one, 4), [1] * 7, "epochs: T_max=epochs"),
        ("CosineAnnealingLR(o, epochs)", lambda one: CosineAnnealingLR(one, 4), [1] * 7, "epochs: T_max=epochs"),
        ("CosineAnnealingLR(o, epochs)", lambda one: CosineAnnealingLR(one, 4), [1] * 6, None),
        ("CosineAnnealingLR(o, epochs)", lambda one: CosineAnnealingLR(one, 4), [6] * 7, None),
        ("CosineAnnealingLR(o, period)", lambda one: CosineAnnealingLR(one, 4), [1] * 9, None),  # a cycle
        ("CosineAnnealingLR(o, total)", lambda one: CosineAnnealingLR(one, 4), [1] * 9, None),
        ("CosineAnnealingLR(o, total)", lambda one: CosineAnnealingLR(one, 12), [3] * 3, "batches: T_max=total"),
        ("CosineAnnealingLR(o, total)", lambda one: CosineAnnealingLR(one, 12), [5] * 2, None),
        ("CosineAnnealingLR(o, total)", lambda one: CosineAnnealingLR(one, 12), [3, 2, 3], None),
        ("CosineAnnealingLR(o, epochs)", lambda one: CosineAnnealingLR(one, 12), [3] * 3, None),
        ("OneCycleLR(o, 1, epochs=4, steps_per_epoch=5)", lambda one: OneCycleLR(one, 1, 20), [5] * 2,
         "batches: steps_per_epoch=5"),
        ("OneCycleLR(o, 1, total)", lambda one: OneCycleLR(one, 1, 20), [5] * 2, "batches: total_steps=total"),
        ("OneCycleLR(o, 1, total)", lambda one: OneCycleLR(one, 1, 20), [1] * 9, None),
        ("OneCycleLR(o, 1, epochs)", lambda one: OneCycleLR(one, 1, 20), [5] * 2, None),
    ],
)  # fmt: skip
def test_a_schedule_is_stepped_at_another_pace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, make: Callable[[SGD], Any], gaps: list[int],
    expected: str | None,
) -> None:  # fmt: skip
    """What its length counts is in the source."""
    assert pace(monkeypatch, tmp_path, text, make, gaps) == expected


def test_several_steps_with_each_batch_are_no_epoch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As of a critic: the scheduler is stepped in the loop over the batches."""
    text, make = "CosineAnnealingLR(o, total)", partial(CosineAnnealingLR, T_max=12)

    assert pace(monkeypatch, tmp_path, text, make, [3] * 3) == "batches: T_max=total"
    assert pace(monkeypatch, tmp_path, text, make, [3] * 3, line=4) is None


def test_a_loop_counts_to_its_last_number(tmp_path: Path) -> None:
    """With what is added to it, and without."""
    file = tmp_path / "train.py"
    file.write_text("for epoch in range(first, args.epochs + 1):\n    pass\n")

    assert numbers_of_loops(str(file)) == {"first", "args.epochs", "args.epochs + 1"}


def test_other_schedulers_have_no_length_that_is_known() -> None:
    """Nothing is noted of them."""
    from gradinspect.checks.evidence.lines.made_objects import Origins
    from gradinspect.checks.evidence.rates.schedules import ScheduleLog
    from gradinspect.checks.evidence.training.optimizers import Optimizers
    from gradinspect.recording.recorder import Recorder

    recorder, stepped = Recorder(), optimizer()
    one = Optimizers(recorder).of(stepped)
    one.num_steps = 1
    log = ScheduleLog(Origins(recorder.frames), recorder.frames, Path.cwd())
    for scheduler in (StepLR(stepped, 1), CosineAnnealingLR(stepped, 2), ReduceLROnPlateau(stepped)):
        log.note(scheduler, one, (1.0,), {}, sys._getframe())

    assert not list(log.facts(lambda _number: None))


_EPOCHS = """\
for epoch in range(3):
    for x in loader:
        loss = f(x)
        loss.backward()
        opt.step()
        s.step({told})
"""


@pytest.mark.parametrize(
    ("told", "program", "expected"),
    [
        ("loss", _EPOCHS, "loss"),
        ("loss.detach().item()", _EPOCHS, "loss"),
        ("float(loss)", _EPOCHS, "loss"),
        ("total / 3", _EPOCHS, None),
        ("valid(net)", _EPOCHS, None),
        ("other", _EPOCHS, None),
        ("loss", _EPOCHS.replace("x in loader", "i in range(9)"), "loss"),
        ("loss", _EPOCHS.replace("epoch in", "seed in").replace("x in loader", "i in range(9)"), None),
        ("loss", _EPOCHS.replace("epoch in range(3)", "seed in seeds").replace("x in loader", "epoch in e"), None),
        ("loss", _EPOCHS.replace("for epoch in range(3)", "if True"), None),
    ],
)
def test_a_plateau_is_told_the_loss_of_each_batch(
    tmp_path: Path, told: str, program: str, expected: str | None
) -> None:
    """The very one that backward is called on, in a loop over batches inside of one over epochs."""
    file = tmp_path / "train.py"
    file.write_text(program.format(told=told))
    line = program.splitlines().index("        s.step({told})") + 1

    def log(patience: int, numbers: Sequence[int]) -> str | None:
        scheduler, found = ReduceLROnPlateau(optimizer(), patience=patience), PlateauLog(str(file), line)
        for number in numbers:
            found.note(scheduler, 1.0, number)
        return found.batch_loss()

    assert log(10, range(1, 7)) == expected
    assert log(200, range(1, 7)) is log(10, range(1, 30, 4)) is log(10, [1, 2]) is None


def loop_at(tmp_path: Path, text: str, **given: Any) -> tuple[int, int] | None:
    """Run a file that asks for the loop around a line of it, and return its passes and the current one."""
    file = tmp_path / "train.py"
    file.write_text(text)
    found: list[Any] = []
    space = {"ask": lambda: found.append(epoch_loop(sys._getframe(1))), "__name__": "train", **given}
    exec(compile(text, str(file), "exec"), space)  # noqa: S102  # the program of the test
    return None if found[-1] is None else (found[-1].num_passes, found[-1].current)


class Settings:
    """What a program keeps its numbers in."""

    epochs = 6

    def __init__(self) -> None:
        """Keep one more."""
        self.first = 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for epoch in range(5):\n  for _ in (1, 2):\n    ask()\n  break", (5, 1)),
        ("for epoch in range(1, n + 1):\n  for _ in (1, 2):\n    ask()\n  if epoch == 2: break", (7, 2)),
        ("for e in range(c.first, c.epochs):\n  for _ in (1, 2):\n    ask()\n  break", (5, 1)),
        ("for e in range(d['n']):\n  for _ in (1, 2):\n    ask()", (3, 3)),
        ("def f():\n  for _ in (1, 2):\n    ask()\nfor e in range(n):\n  f()", (7, 7)),
        ("for e in range(n):\n  ask()", None),  # no loop in it
        ("for e in range(len('abc')):\n  for _ in (1, 2):\n    ask()", None),  # nothing is called
        ("for e in range(d[0]):\n  for _ in (1, 2):\n    ask()", None),
        ("for e in (1, 2):\n  for _ in (1, 2):\n    ask()", None),
    ],
)
def test_the_loop_over_epochs_is_the_outer_one(tmp_path: Path, text: str, expected: tuple[int, int] | None) -> None:
    """What it counts to is read from variables, attributes and dicts."""
    assert loop_at(tmp_path, text, n=7, c=Settings(), d={"n": 3, 0: 2}) == expected


@pytest.mark.parametrize(
    ("make", "loop", "num_calls", "expected"),
    [
        (lambda one: MultiStepLR(one, [6, 9]), EpochLoop("a.py", 1, 12, 1), 9, "epochs: milestones=[6, 9]"),
        (lambda one: MultiStepLR(one, [6, 9]), EpochLoop("a.py", 1, 12, 4), 9, "epochs: milestones=[6, 9]"),
        (lambda one: MultiStepLR(one, [6, 9]), EpochLoop("a.py", 1, 12, 5), 9, None),  # not early
        (lambda one: MultiStepLR(one, [6, 9]), EpochLoop("a.py", 1, 8, 1), 9, None),  # more than passes
        (lambda one: MultiStepLR(one, [6, 9]), EpochLoop("a.py", 1, 12, 1), 8, None),  # not all of them
        (lambda one: MultiStepLR(one, [6, 9], gamma=0.9), EpochLoop("a.py", 1, 12, 1), 9, None),
        (lambda one: MultiStepLR(one, [6, 9]), None, 9, None),
        (lambda one: StepLR(one, 4, gamma=0.5), EpochLoop("a.py", 1, 12, 2), 12, "epochs: step_size=4"),
        (lambda one: StepLR(one, 4, gamma=0.5), EpochLoop("a.py", 1, 12, 2), 11, None),
        (lambda one: StepLR(one, 4, gamma=0.9), EpochLoop("a.py", 1, 12, 2), 12, None),
    ],
)
def test_drops_that_fit_the_epochs_and_are_over_early_are_noticed(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[SGD], Any], loop: EpochLoop | None, num_calls: int,
    expected: str | None,
) -> None:  # fmt: skip
    """All of them, before a third of the passes is over."""
    monkeypatch.setattr(paces, "epoch_loop", lambda _frame: loop)
    log, scheduler = PaceLog("train.py", 3), make(optimizer())
    for number in range(1, num_calls + 1):
        log.note(scheduler, number, sys._getframe())
    found = log.other()

    assert (None if found is None else f"{found.counts}: {found.given}") == expected
