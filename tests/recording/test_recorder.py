"""Each node gets the line and the module call that made it."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.modes import num_function_modes


class Cube(torch.autograd.Function):
    """A custom Function."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        """Cube."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        """Square times three."""
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class Twice(nn.Module):
    """Calls one ReLU two times."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        return self.relu(self.linear(self.relu(self.linear(x))))


def code_of(graph: Graph, name: str) -> list[str]:
    """Return the source lines of all nodes of one class."""
    return [graph.frames[n.frame].code for n in graph.nodes if n.name == name and n.frame is not None]


def test_nodes_know_their_line() -> None:
    """The line is the user's, also for a custom Function, whose `apply` torch does not announce."""
    x = torch.ones(3, requires_grad=True)
    with Recorder() as recorder:
        y = x * 2
        z = Cube.apply(y)
        loss = z.sum()
    graph = capture_graph(loss, recorder=recorder)

    assert code_of(graph, "MulBackward0") == ["y = x * 2"]
    assert code_of(graph, "CubeBackward") == ["z = Cube.apply(y)"]
    assert code_of(graph, "SumBackward0") == ["loss = z.sum()"]


def test_calls_of_one_module_are_told_apart() -> None:
    """A module that is called twice has two calls, numbered, inside the call of its parent."""
    model = Twice()
    with Recorder() as recorder:
        loss = model(torch.ones(2, 3)).sum()
    graph = capture_graph(loss, recorder=recorder)
    calls = [(c.path, c.class_name, c.call, c.parent) for c in graph.modules]

    assert calls == [
        ("", "Twice", 1, None),
        ("linear", "Linear", 1, 0),
        ("relu", "ReLU", 1, 0),
        ("linear", "Linear", 2, 0),
        ("relu", "ReLU", 2, 0),
    ]
    assert [n.module for n in graph.nodes if n.name == "ReluBackward0"] == [4, 2]


def test_several_models_get_the_names_of_their_variables() -> None:
    """Parameters of two models are told apart by the variable that holds the model."""

    def adversaries() -> Graph:  # pytest puts locals() into functions that assert, and those are left alone
        generator = nn.Linear(2, 2)
        critic = nn.Linear(2, 1)
        return capture_graph(critic(generator(torch.ones(1, 2))).sum())

    names = {n.leaf.name for n in adversaries().nodes if n.leaf is not None}

    assert names == {"generator.weight", "generator.bias", "critic.weight", "critic.bias"}


def test_a_model_in_a_closure_is_found() -> None:
    """Parameters carry their dotted names even if no variable in sight holds the model."""

    def build() -> torch.Tensor:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        build.model = model  # type: ignore[attr-defined]
        return model(torch.ones(1, 2)).sum()

    graph = capture_graph(build())
    names = sorted(n.leaf.name or "?" for n in graph.nodes if n.leaf is not None)

    assert names == ["0.bias", "0.weight", "1.bias", "1.weight"]


def test_tied_weights_keep_both_names() -> None:
    """A parameter under two names has one node, one name and one alias."""
    model = nn.ModuleDict({"embedding": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
    model["head"].weight = model["embedding"].weight
    loss = model["head"](model["embedding"](torch.tensor([1]))).sum()
    (leaf,) = [n.leaf for n in capture_graph(loss).nodes if n.leaf is not None]

    assert (leaf.name, leaf.aliases) == ("embedding.weight", ("head.weight",))


def test_the_inference_fast_path_is_taken_as_before() -> None:
    """nn.TransformerEncoderLayer gives the same bits in eval mode with and without a recorder."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        plain = layer(x)
        with Recorder():
            watched = layer(x)

    assert torch.equal(plain, watched)


def test_nothing_is_left_behind() -> None:
    """After recording no hook and no mode is active."""
    from torch.nn.modules import module as torch_module

    before = torch.overrides.has_torch_function
    with Recorder():
        pass

    assert torch._C._len_torch_function_stack() == 0
    assert not torch_module._global_forward_hooks
    assert not torch_module._global_forward_pre_hooks
    assert torch.overrides.has_torch_function is before


@pytest.mark.parametrize("has_compiled", [False, True])
def test_a_paused_recorder_leaves_at_the_next_module_call(has_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes its mode away as soon as it can, but not where compiled code is guarded on the modes it met."""
    monkeypatch.setattr("gradinspect.recording.recorder.has_compiled", lambda: has_compiled)
    model = nn.Linear(2, 2)
    with Recorder() as recorder:
        recorder.pause()
        model(torch.ones(1, 2))
        depth = num_function_modes()
        calls = list(recorder.module_windows)

    assert (depth, calls) == (int(has_compiled), [])
    assert torch._C._len_torch_function_stack() == 0


def test_a_warning_from_torch_points_at_the_line_that_called_it() -> None:
    """While somebody watches, the innermost Python frame is not the user's, and must not be named."""
    x = torch.ones(2, requires_grad=True)
    torch.set_warn_always(True)  # else once in a process
    try:
        with warnings.catch_warnings(record=True) as caught, Recorder():
            warnings.simplefilter("always")
            float(x.sum())
    finally:
        torch.set_warn_always(False)

    assert [warning.filename for warning in caught] == [__file__]


class Calls:
    """Listens to calls of some functions, and notes their names and results."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.seen: list[tuple[str, float]] = []

    def before(self, func: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> str | None:
        """Take part in calls of these functions."""
        return func.__name__ if func.__name__ in self.names else None

    def after(self, begun: Any, result: Any, *_where: Any) -> None:
        """Note a result."""
        self.seen.append((begun, float(result.detach())))


def test_every_listener_is_told_of_the_calls_it_wants() -> None:
    """Several at once, each until it is dismissed, once or twice."""
    first, second = Calls("exp"), Calls("exp", "sin")
    x = torch.zeros(1, requires_grad=True)
    with Recorder() as recorder:
        recorder.listeners += [first, second]
        x.exp()
        x.sin()
        recorder.dismiss(first)
        recorder.dismiss(first)
        x.exp()

    assert first.seen == [("exp", 1.0)]
    assert second.seen == [("exp", 1.0), ("sin", 0.0), ("exp", 1.0)]
