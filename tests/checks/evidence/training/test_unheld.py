"""Parameters that backward reaches and no optimizer holds."""

import weakref

import torch
from torch import nn

from gradinspect.checks.evidence.training.gradient_use import UsedParameter
from gradinspect.checks.evidence.training.optimizers import SeenOptimizer
from gradinspect.checks.evidence.training.registrations import Registrations
from gradinspect.checks.evidence.training.unheld import unheld
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.tensors import known_version


def are_found(held: set[tuple[int, int]], other: set[tuple[int, int]]) -> bool:
    """Read the gradients of two models by some instructions; return if the one is found that no optimizer holds."""
    model, alone = nn.Linear(2, 2), nn.Linear(2, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = SeenOptimizer(weakref.ref(sgd), "SGD", frozenset(map(id, model.parameters())), num_steps=2)
    reached = [
        UsedParameter(weakref.ref(one), "", known_version(one), num_reached=2, readers=readers)
        for module, readers in ((model, held), (alone, other))
        for one in module.parameters()
    ]
    recorder = Recorder()
    found = unheld(reached, [model, alone], [optimizer], Registrations(recorder), set(), recorder.errors.leave_out)
    return {id(one.parameter.tensor()) for one in found} == set(map(id, alone.parameters()))


def test_gradients_that_the_program_reads() -> None:
    """A norm of all is logged; what is read by itself may be applied by hand."""
    assert are_found(set(), set())
    assert are_found({(1, 2)}, {(1, 2)})
    assert not are_found({(1, 2)}, {(1, 4)})
    assert not are_found(set(), {(1, 2)})
    assert not are_found({(1, 2)}, {(1, 2), (1, 4)})


def test_an_optimizer_that_is_gone_holds_nothing_that_no_step_has_changed() -> None:
    """The id of what it held may be that of a parameter that came later."""
    model, gone = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), torch.optim.SGD([torch.zeros(1)], lr=0.1)
    sgd = torch.optim.SGD(model[0].parameters(), lr=0.1)
    held, left = (frozenset(map(id, layer.parameters())) for layer in model)
    optimizers = [
        SeenOptimizer(weakref.ref(gone), "Adam", left, num_steps=2),
        SeenOptimizer(weakref.ref(sgd), "SGD", held, num_steps=2),
    ]
    del gone
    reached = [
        UsedParameter(weakref.ref(one), "", known_version(one), num_reached=2, first_use=number, backward=1,
                      stepped_after=1, step=7 if number < 2 else None)
        for number, one in enumerate(model.parameters())
    ]  # fmt: skip
    recorder = Recorder()
    found = unheld(reached, [model], optimizers, Registrations(recorder), set(), recorder.errors.leave_out)

    assert {id(one.parameter.tensor()) for one in found} == left
