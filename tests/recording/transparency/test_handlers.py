"""Lines are those that call an operator, past handlers of the program that hand it on."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import gradinspect
from torch import nn
from torch.overrides import TorchFunctionMode

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder


class HandsOn(TorchFunctionMode):
    """Hands everything on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward."""
        return func(*args, **(kwargs or {}))


class Delegates(TorchFunctionMode):
    """Leaves the call to another function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward."""
        return self.run(func, args, kwargs or {})

    def run(self, function: Any, given: Any, named: Any) -> Any:
        """Call it."""
        return function(*given, **named)


class Adds(TorchFunctionMode):
    """Computes something itself."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward, and change one result."""
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.tanh else result


class ReadsLocals(TorchFunctionMode):
    """Asks for its variables, which are then left alone."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward."""
        known = locals()
        return known["func"](*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    """A tensor whose class hands everything on."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward."""
        return super().__torch_function__(func, types, args, kwargs or {})


class Holder:
    """No tensor, but torch functions take it for one."""

    def __init__(self, value: torch.Tensor) -> None:
        """Hold a tensor."""
        self.value = value

    @staticmethod
    def __torch_function__(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward what is held."""
        return func(*(one.value if isinstance(one, Holder) else one for one in args), **(kwargs or {}))


def lines(graph: Graph) -> dict[str, str]:
    """Return the line of each class of nodes."""
    return {node.name: graph.frames[node.frame].code for node in graph.nodes if node.frame is not None}


WEIGHT = torch.eye(2, requires_grad=True)
EXPECTED = {
    "TanhBackward0": "hidden = torch.tanh(WEIGHT)",
    "SoftmaxBackward0": "hidden = nn.functional.softmax(hidden, 0)",
    "SumBackward0": "return hidden.sum()",
}


def loss() -> torch.Tensor:
    """Call functions of torch that are written in C and in Python, and a method."""
    hidden = torch.tanh(WEIGHT)
    hidden = nn.functional.softmax(hidden, 0)
    return hidden.sum()


@pytest.mark.parametrize("modes", [(HandsOn,), (Delegates,), (HandsOn, Delegates, HandsOn)])
def test_a_handler_that_hands_on_has_no_line(modes: tuple[type[TorchFunctionMode], ...]) -> None:
    """However many there are, and whichever function makes the call."""
    with Recorder() as recorder:
        entered = [kind() for kind in modes]
        for mode in entered:
            mode.__enter__()
        result = loss()
        for mode in reversed(entered):
            mode.__exit__(None, None, None)

    assert lines(capture_graph(result, recorder=recorder)) == EXPECTED


def test_what_a_handler_computes_has_its_line() -> None:
    """It calls that operator, and no other line does."""
    with Recorder() as recorder, Adds():
        result = loss()

    own = {"AddBackward0": "return result + 1 if func is torch.tanh else result"}
    assert lines(capture_graph(result, recorder=recorder)) == EXPECTED | own


def test_a_handler_that_asks_for_its_variables_keeps_its_line() -> None:
    """They are not read: NOTE [Locals of a running function]."""
    with Recorder() as recorder, ReadsLocals():
        result = loss()

    assert set(lines(capture_graph(result, recorder=recorder)).values()) == {
        'return known["func"](*args, **(kwargs or {}))'
    }


def test_on_another_thread_it_is_the_same() -> None:
    """A thread that begins meanwhile has a mode of its own."""
    found = []

    def work() -> None:
        with HandsOn():
            found.append(loss())

    with Recorder() as recorder:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert lines(capture_graph(found[0], recorder=recorder)) == EXPECTED


def test_handlers_of_classes_have_no_line() -> None:
    """Neither that of a class of tensors, nor a static one of an object that is none."""
    with Recorder() as recorder:
        held = Holder(WEIGHT)
        product = torch.mul(held, torch.ones(2).as_subclass(Wrapped))
        result = product.exp()
    found = lines(capture_graph(result, recorder=recorder))

    assert (found["MulBackward0"], found["ExpBackward0"]) == (
        "product = torch.mul(held, torch.ones(2).as_subclass(Wrapped))",
        "result = product.exp()",
    )


HEAD = """import torch
from torch.overrides import TorchFunctionMode
class Counting(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
class Counted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
weight = torch.eye(2, requires_grad=True)
"""
PROGRAMS = {
    "a mode": "with Counting():\n    loss = weight.exp().sum()\n    loss.backward()\n",
    "torch.autograd.backward": "with Counting():\n    loss = weight.exp().sum()\n    torch.autograd.backward(loss)\n",
    "a class": "\nloss = weight.as_subclass(Counted).exp().sum()\nloss.backward()\n",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_backward_call_has_the_line_and_names_outside(program: str, tmp_path: Path) -> None:
    """The loss is called what the program calls it, not `args[0]`."""
    (tmp_path / "train.py").write_text(HEAD + program)
    traced = gradinspect("trace", "train.py", cwd=tmp_path).stdout

    assert traced.startswith("backward #1  train.py:13  ")
    assert "root loss: #0" in traced
    assert "train.py:5" not in traced


STEPS = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Counting():
    for step in range(3):
        large = torch.ones(1000, 1000)
        larger = torch.cat([large, large])
        del large
        loss = model(torch.randn(3, 4)).mean() + larger.mean()
        del larger
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_memory_of_a_step_has_the_line_outside(tmp_path: Path) -> None:
    """Also what an operator allocates, of which only the frames are known."""
    (tmp_path / "train.py").write_text(HEAD + STEPS)
    shown = gradinspect("fit", "train.py", "--real", cwd=tmp_path).stdout

    assert "train.py:17  larger = torch.cat([large, large])" in shown
