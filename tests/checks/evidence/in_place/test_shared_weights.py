"""Weights that are kept apart from those that are trained, in the same memory."""

import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.facts.training import SharedWeights

X = torch.ones(3, 2)


def averaged(*, copies: bool, is_old: bool = True) -> list[SharedWeights]:
    """Train a model, and add its weights to what was kept of them."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept = model.weight.data.clone() if copies else model.weight.data
        for _ in range(3):
            program.backward(model(X).sum())
            optimizer.step()
            kept = kept if is_old else model.weight.data
            kept.mul_(0.9).add_(model.weight.data, alpha=0.1)
    return program.facts(SharedWeights)


def test_an_average_of_weights_with_themselves() -> None:
    """It is found once, with the line that shares their memory; a copy is none."""
    (found,) = averaged(copies=False)

    assert (found.kind, found.name) == ("average", "weight")
    assert "model.weight.data.clone()" in (code_of(found.shared) or "")
    assert averaged(copies=True) == []


def test_weights_of_this_moment_may_be_added_to_themselves() -> None:
    """As weight decay by hand does."""
    assert averaged(copies=False, is_old=False) == []


def test_tensors_of_transforms_have_no_address() -> None:
    """They are left alone, and nothing of ours fails."""
    program = Program()
    with program:
        torch.func.vmap(lambda x, y: x.clone().add_(y))(X, X)

    assert program.facts(SharedWeights) == []
    assert list(program.recorder.errors.notes()) == []


def synchronized(*, copies: bool, steps: int = 3, is_back: bool = False) -> list[SharedWeights]:
    """Train a model, give the parameters of another one its values after some steps, and go on."""
    program = Program()
    with program:
        model, target = nn.Linear(2, 1), nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            program.backward(model(X).sum())
            optimizer.step()
        for kept, new in zip(target.parameters(), model.parameters(), strict=True):
            before = kept.data
            kept.data = new.data.clone() if copies else new.data
            kept.data = before if is_back else kept.data
        program.backward(model(X).sum())
        optimizer.step()
    return program.facts(SharedWeights)


def test_a_target_that_is_given_the_memory_of_what_is_trained() -> None:
    """Once training has begun: before, it may tie weights. It may be for an evaluation only."""
    (found,) = synchronized(copies=False)

    assert (found.kind, found.name) == ("synchronized", "model.weight")
    assert code_of(found.shared) == "kept.data = new.data.clone() if copies else new.data"
    assert synchronized(copies=True) == synchronized(copies=False, steps=0) == []
    assert synchronized(copies=False, is_back=True) == []
