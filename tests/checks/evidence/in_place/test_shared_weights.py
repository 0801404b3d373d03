"""Weights that are kept apart from those that are trained, in the same memory."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training_program import Program, code_of

from gradinspect.checks.evidence.in_place.shared_weights import _loaded_elsewhere, _loaded_later
from gradinspect.checks.facts.training import SharedWeights
from gradinspect.graph import Frame

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


def kept(*, copies: bool, is_held: bool = True, is_loaded: bool = False) -> list[SharedWeights]:
    """Train a model and keep its state dicts, all of them or the last one; perhaps load the first again."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        states: list[Any] = []
        for _ in range(5):
            program.backward(model(X).sum())
            optimizer.step()
            state = model.state_dict()
            states = states if is_held else []
            states.append({name: value.clone() for name, value in state.items()} if copies else state)
        if is_loaded:
            model.load_state_dict(states[0])
    return program.facts(SharedWeights)


def test_state_dicts_that_are_held_are_the_same() -> None:
    """Several of one line, with steps in between; copies are not, nor is one that takes the place of another."""
    (found,) = kept(copies=False)

    assert (found.kind, found.taken, found.num_kept) == ("snapshots", "model.state_dict()", 3)
    assert kept(copies=True) == kept(copies=False, is_held=False) == []


def test_a_state_dict_that_is_loaded_into_its_own_model() -> None:
    """Only if an optimizer has stepped since."""
    program = Program()
    with program:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        start = model.state_dict()
        model.load_state_dict(start)
        for _ in range(2):
            program.backward(model(X).sum())
            optimizer.step()
        model.load_state_dict(model.state_dict())
        assert program.facts(SharedWeights) == []
        model.load_state_dict(start)
    (found,) = program.facts(SharedWeights)

    assert (found.kind, found.name, found.taken) == ("loaded", "start", "model.state_dict()")
    assert code_of(found.shared) == "start = model.state_dict()"
    assert kept(copies=True, is_loaded=True) == []


def test_the_lines_may_be_parts_of_statements() -> None:
    """What they show is named."""
    asks = Frame(file="train.py", line=2, code='"model": self.net.state_dict(),')
    loads = [Frame(file="train.py", line=9, code=f"net.load_state_dict({one}") for one in ("best['w'],", "")]

    assert [_loaded_later(one, asks).name for one in loads] == ["best['w']", "what is loaded"]
    assert _loaded_later(None, asks).taken == "self.net.state_dict()"


@pytest.mark.parametrize(
    ("saved", "loaded", "expected"),
    [
        ('best = {"w": net.state_dict()}', 'net.load_state_dict(best["w"])', ("loaded", "best['w']")),
        ('self.log["best"] = {"w": net.state_dict()}', 'net.load_state_dict(self.log["best"]["w"])',
         ("loaded", "self.log['best']['w']")),
        ("best = net.state_dict()", "net.load_state_dict(best)", ("state", "best")),
        ('best = {"w": net.state_dict()}', 'net.load_state_dict(best["v"])', None),
        ('best = {"w": net.state_dict()}', 'best = torch.load("f")\nnet.load_state_dict(best["w"])', None),
        ("best = net.state_dict()", 'best = torch.load("f")\nnet.load_state_dict(best)', None),
        ('best = {"w": net.state_dict()}', 'other.load_state_dict(best["w"])', None),
    ],
)  # fmt: skip
def test_where_a_state_dict_is_loaded(
    tmp_path: Path, saved: str, loaded: str, expected: tuple[str, str] | None
) -> None:
    """Under its key in a dict, too; one that was read from a file before is another one."""
    file = tmp_path / "train.py"
    file.write_text(f"if True:\n    {saved}\n{loaded}\n")
    found = _loaded_elsewhere(str(file), Frame(file="train.py", line=2))

    assert (None if found is None else (found.kind, found.name)) == expected
