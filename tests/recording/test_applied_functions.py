"""A custom Function is at the line that applied it, whatever its forward calls, and whatever saves its tensors."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import gradinspect
from torch import nn
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.threads import ThreadRecord
from gradinspect.torch_api import nodes

Context = Any


class Same(Function):
    """Returns its input, as the adjoint of an ODE solver may; nothing in its forward is a torch function."""

    @staticmethod
    def forward(ctx: Context, x: torch.Tensor) -> torch.Tensor:
        """Save the input and return it."""
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(_ctx: Context, grad: torch.Tensor) -> torch.Tensor:
        """Pass the gradient on."""
        return grad


class Sink(Function):
    """Returns all of its inputs, as that of DistributedDataParallel."""

    @staticmethod
    def forward(ctx: Context, _state: object, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return them."""
        ctx.set_materialize_grads(False)
        return inputs

    @staticmethod
    def backward(_ctx: Context, *grads: torch.Tensor) -> tuple[Any, ...]:
        """Pass the gradients on."""
        return None, *grads


class Second(Function):
    """Returns one of several inputs."""

    @staticmethod
    def forward(_ctx: Context, _first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return the second one."""
        return second

    @staticmethod
    def backward(_ctx: Context, grad: torch.Tensor) -> tuple[None, torch.Tensor]:
        """Pass the gradient on to it."""
        return None, grad


class Marked(Function):
    """Says that it has changed its input, and returns it."""

    @staticmethod
    def forward(ctx: Context, x: torch.Tensor) -> torch.Tensor:
        """Mark it."""
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(_ctx: Context, grad: torch.Tensor) -> torch.Tensor:
        """Pass the gradient on."""
        return grad


class View(Function):
    """Returns a view of its input, and is set up apart from its forward."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        """View it."""
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(_ctx: Context, grad: torch.Tensor) -> torch.Tensor:
        """Pass the gradient on."""
        return grad


class All(nn.Module):
    """Applies each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        x = self.linear(x)
        x = Same.apply(x)
        x, y = Sink.apply(None, x, x + 1)
        x = Second.apply(x, y)
        x = Marked.apply(x * 2)
        x = View.apply(x)
        return Same.apply(x)


LINES = {
    ("SameBackward", "x = Same.apply(x)"),
    ("SinkBackward", "x, y = Sink.apply(None, x, x + 1)"),
    ("SecondBackward", "x = Second.apply(x, y)"),
    ("MarkedBackward", "x = Marked.apply(x * 2)"),
    ("ViewBackward", "x = View.apply(x)"),
    ("SameBackward", "return Same.apply(x)"),
}


def lines_of_functions(graph: Graph) -> set[tuple[str, str | None]]:
    """Return the class and line of every custom Function."""
    found = ((node.name, node.frame) for node in graph.nodes if node.kind == "custom")
    return {(name, None if frame is None else graph.frames[frame].code) for name, frame in found}


@pytest.mark.parametrize(
    "saving",
    [nullcontext, lambda: saved_tensors_hooks(lambda x: (x * 1,), lambda packed: packed[0]), save_on_cpu],
    ids=["plainly", "hooks", "save_on_cpu"],
)
def test_a_function_that_calls_nothing_is_at_its_line(saving: Callable[[], AbstractContextManager[Any]]) -> None:
    """Also if hooks call torch functions right after its forward, and in the module that applied it."""
    model = All()
    with Recorder() as recorder, saving():
        loss = model(torch.ones(2, 2)).sum()
    graph = capture_graph(loss, model=model, recorder=recorder)

    assert lines_of_functions(graph) == LINES
    assert {node.module for node in graph.nodes if node.kind == "custom"} == {0}


def test_a_function_in_a_checkpoint_is_at_its_line() -> None:
    """A checkpoint saves under hooks of its own."""
    model = All()
    with Recorder() as recorder:
        loss = checkpoint(model, torch.ones(2, 2), use_reentrant=False).sum()
    graph = capture_graph(loss, model=model, recorder=recorder)

    assert lines_of_functions(graph) == LINES


def test_a_function_of_another_thread_is_at_its_line() -> None:
    """Numbers begin again on each thread; what this thread applies is not confused with it."""
    model = All()
    with Recorder() as recorder, ThreadPoolExecutor(1) as pool:
        x = Same.apply(torch.ones(2, 2, requires_grad=True))
        theirs = pool.submit(model, torch.ones(2, 2)).result()
        loss = (x + theirs).sum()
    graph = capture_graph(loss, model=model, recorder=recorder)

    assert lines_of_functions(graph) == {
        *LINES,
        ("SameBackward", "x = Same.apply(torch.ones(2, 2, requires_grad=True))"),
    }


def test_nothing_of_ours_is_left_on_the_class() -> None:
    """What makes the ctx of custom Functions is as before, and no class of the program is kept."""
    with Recorder() as recorder:
        during = "__init__" in vars(BackwardCFunction)
        Same.apply(torch.ones(2, requires_grad=True))

    assert during
    assert "__init__" not in vars(BackwardCFunction)
    assert [kind() for kind in recorder.own.applied_classes] == [vars(Same)["_backward_cls"]]


def test_a_node_that_is_made_after_its_context_gets_the_next_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a torch whose ctx has no node yet."""

    def fail(_ctx: object) -> int:
        raise RuntimeError

    monkeypatch.setattr(nodes, "sequence_nr", fail)

    assert nodes.number_of_context(object()) == nodes.next_sequence_nr()


def test_numbers_that_do_not_go_on_belong_to_another_thread() -> None:
    """A thread may have the identifier of one that has ended; and some torch has no numbers at all."""
    record = ThreadRecord()
    record.add_applied(record.first + 5, Same, 1)
    record.add_applied(record.first + 3, Same, 2)
    record.add_applied(nodes.UNKNOWN_NR, Same, 3)

    assert [record.frame_of(record.first + number) for number in (3, 4, 5, 6)] == [None, None, 1, None]
    assert record.has_applied(record.first + 5, Same)
    assert not record.has_applied(record.first + 5, Sink)


PROGRAM = """
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * float("nan")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return Same.apply(self.inner(x).tanh())


net = Net()
with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
    loss = net(torch.ones(3, 2)).sum()
loss.backward()
"""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("trace", "train.py"), "train.py:24"),
        (("saved", "train.py"), "train.py:24"),
        (("memory", "train.py", "--by", "line"), "24 █"),
        (("find", "train.py", "class=SameBackward"), "train.py:24"),
        (("check", "train.py"), "train.py:24"),
    ],
    ids=lambda words: words[0],
)
def test_every_report_shows_the_line(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """It is that of `apply`, of which nothing but the call itself is seen."""
    (tmp_path / "train.py").write_text(PROGRAM)
    done = gradinspect(*words, cwd=tmp_path)

    assert line in done.stdout, done.stdout + done.stderr
