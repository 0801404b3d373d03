"""Memory that two parameters share, frozen parameters that move, and hooks that become more."""

import sys
import threading
from functools import partial
from typing import Any

import torch
from torch import nn

from gradinspect.checks.evidence.in_place.moving_frozen import MovingFrozen
from gradinspect.checks.evidence.training.gradient_use import GradientUse
from gradinspect.checks.evidence.training.memory_twice import MemoryTwice
from gradinspect.checks.evidence.training.optimizers import Optimizers
from gradinspect.checks.evidence.training.piled_hooks import PiledHooks, line_of_hook
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.recording.recorder import Recorder


def with_gradient(data: torch.Tensor) -> nn.Parameter:
    """Make a parameter of some memory, with a gradient."""
    parameter = nn.Parameter(data)
    parameter.grad = torch.ones_like(parameter)
    return parameter


def pairs_in(*parameters: nn.Parameter) -> list[tuple[int, int]]:
    """List which of the parameters of one optimizer share memory, by their places."""
    log = MemoryTwice(Registrations(Recorder()), GradientUse(Recorder()))
    log.before_step(torch.optim.SGD(parameters, lr=0.1), None)
    place = {id(one): number for number, one in enumerate(parameters)}
    return [(place[id(pair.first)], place[id(pair.second)]) for pair in log.pairs()]


def test_two_parameters_in_one_memory_are_found() -> None:
    """Also if one is the transpose of the other."""
    memory = torch.ones(2, 3)

    assert pairs_in(with_gradient(memory), with_gradient(torch.ones(2)), with_gradient(memory.t())) == [(0, 2)]


def test_parts_of_a_memory_and_parameters_that_are_not_updated_do_not_count() -> None:
    """Neither do those without elements."""
    memory = torch.ones(4)
    halves = with_gradient(memory[:2]), with_gradient(memory[2:])

    assert pairs_in(with_gradient(memory), nn.Parameter(memory), *halves) == []
    assert pairs_in(with_gradient(memory[:0]), with_gradient(memory[:0])) == []
    assert pairs_in(*(with_gradient(torch.ones(2, device="meta")) for _ in range(2))) == []
    assert pairs_in(with_gradient(memory.view(torch.int32).view(torch.float32)), with_gradient(torch.ones(4))) == []


def test_the_one_that_was_assigned_to_came_later() -> None:
    """Its line is that of the assignment, not of the registration."""
    log = MemoryTwice(Registrations(Recorder()), GradientUse(Recorder()))
    first, second = with_gradient(torch.ones(3)), with_gradient(torch.zeros(3))
    first.data = second.data
    log.assigned(first, 7)
    log.before_step(torch.optim.SGD([first], lr=0.1), 8)
    log.before_step(torch.optim.SGD([second], lr=0.1), 9)
    (pair,) = log.pairs()

    assert pair.first is second
    assert (pair.made, pair.step) == (7, 9)


def moved(momentum: float, *, zeroes: bool, is_replaced: bool = False) -> list[str]:
    """Train a layer, freeze it, step again, and list what has moved."""
    model = nn.Linear(2, 1)
    recorder = Recorder()
    gradients, optimizers = GradientUse(recorder), Optimizers(recorder)
    log = MovingFrozen(gradients, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    for step in range(2):
        if step == 0:
            gradients.begin([(p, name) for name, p in model.named_parameters()], sys._getframe())
            model(torch.ones(3, 2)).sum().backward()
        else:
            model.requires_grad_(False)
            for p in model.parameters():
                assert p.grad is not None
                p.grad = torch.ones_like(p) if is_replaced else p.grad
                p.grad.mul_(0 if zeroes else 1)
        gradients.before_step(optimizer, sys._getframe())
        log.before_step(optimizer)
        optimizer.step()
        gradients.after_step(optimizer)
        log.after_step(optimizer, optimizers.of(optimizer))
    return [one.name for one in log.found.values()]


def test_a_gradient_that_was_left_moves_a_frozen_parameter() -> None:
    """As it was, or as zeros if the optimizer has momentum; zeros alone move nothing."""
    assert moved(0.0, zeroes=False) == ["weight", "bias"]
    assert moved(0.9, zeroes=True) == ["weight", "bias"]
    assert moved(0.0, zeroes=True) == []


def test_a_gradient_that_the_program_sets_is_meant() -> None:
    """An optimizer may be used for parameters that autograd does not know."""
    assert moved(0.0, zeroes=False, is_replaced=True) == []


def take_half(grad: torch.Tensor) -> torch.Tensor:
    """Be a hook."""
    return grad * 0.5


def scale(factor: float, grad: torch.Tensor) -> torch.Tensor:
    """Be a hook that is made by partial."""
    return grad * factor


def piled(hooks: list[Any], *, removes: bool = False) -> list[tuple[str, str, int]]:
    """Register a hook before each backward call, and list the piles."""
    model = nn.Linear(2, 1)
    log = PiledHooks()
    for hook in hooks:
        handles = [model.weight.register_hook(hook), model.register_forward_hook(hook)] if hook else []
        log.begin([(model.weight, "weight")], [model], None)
        for handle in handles if removes else ():
            handle.remove()
    return [(pile.name, pile.kind, pile.count) for pile in log.found()]


def test_hooks_of_the_same_code_pile_up() -> None:
    """If they become more twice, on a tensor or on a module."""
    assert piled([take_half] * 3) == [("weight", "tensor", 3), ("Linear", "forward", 3)]
    assert piled([partial(scale, factor) for factor in (0.1, 0.2, 0.3)])[0] == ("weight", "tensor", 3)
    assert piled([take_half, None, take_half, None, take_half])[0] == ("weight", "tensor", 3)


def test_hooks_that_are_removed_or_differ_do_not_pile_up() -> None:
    """Nor do two of one kind."""
    assert piled([take_half] * 4, removes=True) == []
    assert piled([take_half, partial(scale, 0.5), print, torch.relu]) == []
    assert piled([take_half, take_half, None]) == []


def test_a_hook_that_was_added_once_is_not_waited_for_long() -> None:
    """Another one would have come with the next iteration."""
    model = nn.Linear(2, 1)
    log = PiledHooks()
    waits = []
    for call in range(6):
        if call < 2:
            model.weight.register_hook(take_half)
        log.begin([(model.weight, "weight")], [], None)
        waits.append(log.waits() is not None)

    assert waits == [False, True, True, True, False, False]


def test_the_line_of_a_hook_is_that_of_its_registration() -> None:
    """Of the call that is given its name, or that a lambda is written in."""
    model = nn.Linear(2, 1)
    log = PiledHooks()
    first = sys._getframe().f_lineno + 2
    for _ in range(3):
        model.weight.register_hook(
            lambda grad: grad * 0.5,
        )
        model.bias.register_post_accumulate_grad_hook(take_half)
        log.begin([(model.weight, "weight"), (model.bias, "bias")], [], None)
    lines = [line_of_hook(pile) for pile in log.found()]

    assert [line and line.line for line in lines] == [first, first + 3]


def test_memory_that_is_used_again_is_another() -> None:
    """A parameter that is gone, or has moved elsewhere, shares nothing; nor does a sparse one."""
    log, memory = MemoryTwice(Registrations(Recorder()), GradientUse(Recorder())), torch.ones(3)

    def step(parameter: nn.Parameter) -> None:
        log.before_step(torch.optim.SGD([parameter], lr=0.1), None)

    first = with_gradient(memory)
    step(first)
    first.data = torch.zeros(3)
    second = with_gradient(memory)
    step(second)
    assert list(log.pairs()) == []
    del second
    third = with_gradient(memory)
    step(third)
    assert list(log.pairs()) == []
    fourth = with_gradient(memory)
    step(fourth)
    step(third)
    (pair,) = log.pairs()

    assert {id(pair.first), id(pair.second)} == {id(third), id(fourth)}
    assert pairs_in(*(nn.Parameter(torch.eye(2).to_sparse()) for _ in range(2))) == []


def test_pairs_of_which_one_is_gone_are_forgotten() -> None:
    """They share nothing any more."""
    log, memory = MemoryTwice(Registrations(Recorder()), GradientUse(Recorder())), torch.ones(3)
    parameters = [with_gradient(memory) for _ in range(2)]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    log.before_step(optimizer, None)
    assert len(list(log.pairs())) == 1
    del optimizer
    parameters.pop()

    assert list(log.pairs()) == []


def test_the_gradient_of_a_parameter_that_another_thread_trains_is_not_read() -> None:
    """The engine may be replacing it, unless the optimizer of this step holds it."""
    memory = torch.ones(3)
    theirs, ours = with_gradient(memory), with_gradient(memory)
    gradients = GradientUse(Recorder())
    thread = threading.Thread(target=gradients.begin, args=([(theirs, "theirs")], None))
    thread.start()
    thread.join()
    log = MemoryTwice(Registrations(Recorder()), gradients)
    log.before_step(torch.optim.SGD([theirs], lr=0.1), None)
    log.before_step(torch.optim.SGD([ours], lr=0.1), None)

    assert list(log.pairs()) == []

    log.before_step(torch.optim.SGD([theirs, ours], lr=0.1), None)

    assert len(list(log.pairs())) == 1
