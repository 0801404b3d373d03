"""What optimizers do: made anew, without a learning rate, and stepped by schedulers."""

import sys
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.training.optimizers import Optimizers, RateFalls, SunkenRate
from gradinspect.recording.recorder import Recorder


@pytest.mark.parametrize(
    ("rates", "count"),
    [
        ([0.1, 0.01, 0.001], 2),
        ([0.1, 0.01, 0.001, 0.0001], 3),
        ([0.1, 0.02, 0.004], 2),  # the weakest fall that counts
        ([0.1, 0.021, 0.0044], 0),
        ([1.0, 0.1, 0.01, 0.0009], 1),  # nearly the same factor
        ([1.0, 0.1, 0.2, 0.02], 1),
        ([0.0, 0.1, 0.01], 1),
        ([0.1, 0.09, 0.081], 0),  # a factor near 1
        ([0.1, 0.01, 0.0], 0),  # a schedule that ends
        ([0.1, 0.01, 0.0001], 1),  # another factor
        ([0.1, None, 0.001], 0),
    ],
)
def test_falls_by_one_factor_are_counted(rates: list[float | None], count: int) -> None:
    """With one step of the optimizer before each."""
    falls = RateFalls(rate=rates[0])
    for steps, rate in enumerate(rates[1:], 1):
        falls.note(rate, steps, None)

    assert falls.count == count


def test_a_schedule_by_epochs_may_fall() -> None:
    """Several steps of the optimizer lie between."""
    falls = RateFalls(rate=0.1)
    for steps, rate in ((4, 0.01), (8, 0.001)):
        falls.note(rate, steps, None)

    assert falls.count == 0


def trained(
    kinds: list[type[torch.optim.Optimizer]], *, lines: tuple[int, ...] = (1, 1), steps: int = 1, shares: bool = True
) -> list[bool]:
    """Make one optimizer after the other, step each, and return which are said to be replaced."""
    recorder, models = Recorder(), [nn.Linear(2, 1), nn.Linear(2, 1)]
    log, made = Optimizers(recorder), []
    frames = {line: frame_at(line) for line in set(lines)}
    for place, (kind, line) in enumerate(zip(kinds, lines, strict=True)):
        model = models[0 if shares else place]
        optimizer = kind(model.parameters(), lr=0.1)
        made.append(optimizer)
        log.create(optimizer, 0, frames[line])
        for _ in range(steps):
            model(torch.ones(1, 2)).sum().backward()
            log.before_step(optimizer, sys._getframe())
            optimizer.step()
            log.after_step(optimizer, is_idle=False)
    return [one.is_replaced for one in log.seen]


def frame_at(line: int) -> FrameType:
    """Return a frame of some line."""
    made: dict[str, Any] = {"sys": sys}
    exec(compile("\n" * line + "def get(): return sys._getframe()", "<program>", "exec"), made)  # noqa: S102  # as a program
    frame: FrameType = made["get"]()
    return frame


class Counting(torch.optim.SGD):
    """Counts its steps, and knows nothing else of them."""

    def step(self, closure: Any = None) -> None:
        """Count."""
        for weight in self.param_groups[0]["params"]:
            self.state[weight]["step"] = torch.tensor(1.0)


def test_an_optimizer_that_is_made_anew_after_each_step() -> None:
    """On the same line, of the same parameters, after one step that left a state."""
    adam, sgd = torch.optim.Adam, torch.optim.SGD

    assert trained([adam, adam]) == [True, False]
    assert trained([sgd, sgd]) == trained([Counting, Counting]) == [False, False]  # they have no state to lose
    assert trained([adam, adam], lines=(1, 2)) == [False, False]
    assert trained([adam, adam], steps=2) == [False, False]
    assert trained([adam, adam], shares=False) == [False, False]


def zero_rates(*rates: float, scheduled: int = 0, steps: int = 2, other: float | None = None) -> tuple[bool, bool]:
    """Step an optimizer whose groups have some rates: whether it is waited for, and said to learn nothing."""
    log = Optimizers(Recorder())
    weights = [nn.Parameter(torch.ones(2)) for _ in rates]
    one = torch.optim.SGD([{"params": [weight], "lr": rate} for weight, rate in zip(weights, rates, strict=True)], lr=0)
    every = [one] if other is None else [one, torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=other)]
    scheduler = torch.optim.lr_scheduler.LambdaLR(one, lambda _step: 0.0) if scheduled else None
    for optimizer in every * steps:
        log.before_step(optimizer, sys._getframe())
        log.after_step(optimizer, is_idle=False)
    for _ in range(scheduled):
        log.schedule(scheduler, sys._getframe(), had_backward=True)
    return log.waits() is not None, bool(list(log.without_learning_rate()))


def test_an_optimizer_with_a_learning_rate_of_zero() -> None:
    """In each step and each group; a scheduler may raise it, and is given five steps."""
    assert zero_rates(0.0, 0.0) == (True, True)
    assert zero_rates(0.0, 0.1) == (False, False)
    assert zero_rates(0.1) == (False, False)
    assert zero_rates(0.0, steps=1) == (False, False)
    assert zero_rates(0.0, scheduled=4) == (True, False)
    assert zero_rates(0.0, scheduled=5) == zero_rates(0.0, scheduled=6) == (False, True)
    assert zero_rates(0.0, other=0.1) == (True, True)
    assert zero_rates(0.0, scheduled=5, other=0.1) == (False, False)  # one may begin later than the other


def late(*, steps: int = 4, each: bool = False, is_zero: bool = True, other: bool = False) -> int:
    """Step an optimizer in two epochs, whose first learning rate may be 0: how many steps were lost."""
    log = Optimizers(Recorder())
    one = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    second = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(one, lambda epoch: float(epoch > 0 or not is_zero))
    for number in range(2 * steps):
        for optimizer in (one, second) if other else (one,):
            log.before_step(optimizer, sys._getframe())
            optimizer.step()
            log.after_step(optimizer, is_idle=False)
        if each or number % steps == steps - 1:
            scheduler.step()
            log.schedule(scheduler, sys._getframe(), had_backward=True)
    return log.of(one).num_late


def kept(num_zero: int, *, other: bool = False) -> int:
    """Step an optimizer with its scheduler, whose first factors are 0: how many steps that has cost."""
    log = Optimizers(Recorder())
    one = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    second = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(one, lambda step: step // num_zero)
    for _ in range(num_zero + 1):
        for optimizer in (one, second) if other else (one,):
            log.before_step(optimizer, sys._getframe())
            optimizer.step()
            log.after_step(optimizer, is_idle=False)
        scheduler.step()
        log.schedule(scheduler, sys._getframe(), had_backward=True)
    return log.of(one).num_at_zero


def test_a_schedule_that_is_0_for_long_is_noted() -> None:
    """Unless another optimizer learns meanwhile."""
    assert [kept(19), kept(20), kept(31), kept(31, other=True)] == [0, 20, 31, 0]


def test_a_warm_up_of_which_the_first_epoch_is_lost() -> None:
    """Where each batch has its own step, one is; another optimizer may learn before."""
    assert late() == 4
    assert late(each=True) == late(steps=2) == late(is_zero=False) == late(other=True) == 0


def test_steps_of_a_scheduler_before_the_first_of_its_optimizer() -> None:
    """They are noted, with whether a backward came before the first of them; its own constructor does not count."""
    log, optimizer = Optimizers(Recorder()), torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    log.schedule(object(), sys._getframe(), had_backward=True)
    for had_backward in (False, True):
        log.schedule(scheduler, sys._getframe(), had_backward=had_backward)
    (one,) = log.seen
    assert (len(one.scheduled), one.had_backward, one.num_scheduled) == (2, False, 2)
    assert one.name == "SGD"
    log.before_step(optimizer, sys._getframe())
    log.after_step(optimizer, is_idle=False)
    assert (one.name, one.num_steps) == ("optimizer", 1)
    log.schedule(scheduler, sys._getframe(), had_backward=True)

    assert (len(one.scheduled), one.num_scheduled, one.falls.num_steps) == (2, 3, 1)
    assert log.of(optimizer) is one
    assert log.living() == [optimizer]


def test_a_rate_is_known_if_it_is_a_number() -> None:
    """Of several groups the largest; one that is kept on a device is not read."""
    weights = [nn.Parameter(torch.ones(2)) for _ in range(2)]

    def rate(*rates: object) -> float | None:
        log, groups = Optimizers(Recorder()), [
            {"params": [weight], "lr": one} for weight, one in zip(weights, rates, strict=False)
        ]  # fmt: skip
        log.create(torch.optim.SGD(groups, lr=0.1), 0, None)
        return log.seen[0].falls.rate

    assert rate(0.1, 0.5) == 0.5
    assert rate(2) == 2
    assert rate(torch.tensor(0.1)) is None
    assert rate(0.5, torch.tensor(0.1)) is None


def test_an_optimizer_of_the_program_may_have_a_rate_of_its_own() -> None:
    """What `lr` means is known of those of torch only."""

    class Own(torch.optim.SGD):
        pass

    log = Optimizers(Recorder())
    for kind in (Own, torch.optim.SGD):
        optimizer = kind([nn.Parameter(torch.ones(2))], lr=0.0)
        for _ in range(2):
            log.before_step(optimizer, sys._getframe())
            log.after_step(optimizer, is_idle=False)
        found = list(log.without_learning_rate())

        assert len(found) == (kind is torch.optim.SGD)


def test_a_rate_that_is_next_to_nothing_is_so_for_long() -> None:
    """For as many steps as it took to fall; one that rises again is a schedule, and one that ends with 0 soon after."""
    sunken = SunkenRate(largest=0.1)
    for steps in range(1, 21):
        sunken.note(0.1 * 0.1 ** (steps // 5), steps, 7)

    assert sunken.lasts(39) is None
    assert sunken.lasts(40) == (1.01e-4, 20, 7)

    sunken.note(None, 30, 7)
    assert sunken.lasts(40)

    sunken.note(0.1, 30, 7)
    assert not sunken.lasts(40)

    sunken.note(0.0, 40, 7)
    assert not sunken.lasts(159)
    assert sunken.lasts(160)


@pytest.mark.parametrize(("batches", "found"), [(1, (1.01e-3, 27, 7)), (10, None)])
def test_a_thousandth_is_next_to_nothing_for_a_scheduler_of_batches(batches: int, found: Any) -> None:
    """For four times as long again; one that is stepped once per epoch may be meant so."""
    sunken = SunkenRate(largest=0.2)
    for steps in range(1, 136):
        epoch = steps // batches
        if steps % batches == 0:
            sunken.note(0.2 * 0.1 ** ((epoch >= 15) + (epoch >= 23) + (epoch >= 27)), steps, 7)

    assert sunken.lasts(134) is None
    assert sunken.lasts(135) == found
    if found is None:
        assert sunken.lasts(5_000) is None


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (lambda gradient: gradient, "v"),
        (lambda gradient: gradient.detach(), "v"),
        (lambda gradient: gradient.clone(), None),
        (lambda _gradient: 0.5, None),
    ],
)
def test_a_gradient_that_is_kept_without_a_copy_is_known(keep: Any, kept: str | None) -> None:
    """After each step of an optimizer of the program; those of torch are not looked at."""

    class Keeping(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    with Recorder() as recorder:
        log = Optimizers(recorder)
        for optimizer in (Keeping([weight]), torch.optim.SGD([weight])):
            optimizer.state[weight]["v"] = keep(weight.grad)
            for _ in range(2):
                log.before_step(optimizer, sys._getframe())
                log.after_step(optimizer, is_idle=False)

    assert [(one.kept, one.num_kept) for one in log.seen] == [(kept, 2 if kept else 0), (None, 0)]
