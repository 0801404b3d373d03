"""Each node gets the line and the module call that made it."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

from gradinspect.graph import Graph
from gradinspect.recording.capture import capture_graph
from gradinspect.recording.names.names import Names
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


def test_a_hook_from_before_the_recording_ends_with_it() -> None:
    """As a listener's, which may come before the recorder is entered."""
    called: list[nn.Module] = []
    recorder = Recorder()
    recorder.before_modules(lambda module, _args: called.append(module), called.append)
    recorder.after_modules(lambda module, _args, _output: called.append(module), called.append)
    layer = nn.Linear(3, 3)
    with recorder:
        layer(torch.ones(3))
    layer(torch.ones(3))

    assert called == [layer, layer]


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


class Asks(nn.Module):
    """Asks the recorder what is running, before and after a module in it."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.recorder = recorder
        self.answers: list[int | None] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run."""
        self.answers.append(self.recorder.running_module)
        x = self.inner(x) * 2
        self.answers.append(self.recorder.running_module)
        return x


def test_the_running_module_is_the_innermost_one() -> None:
    """During a call, before and after one in it; outside of all, none is."""
    recorder = Recorder()
    model = Asks(recorder)
    moved: list[int | None] = []
    recorder.on_module.append(lambda: moved.append(recorder.running_module))
    with recorder:
        model(torch.ones(1, 2))
        after = recorder.running_module

    assert model.answers == [0, 0]
    assert moved == [0, 1, 0, None]
    assert after is None
    assert [recorder.modules[number]() for number in (0, 1)] == [model, model.inner]


def test_a_call_that_fails_is_over() -> None:
    """So is every one in it; the next call is not inside."""

    class Fails(nn.Module):
        def forward(self, _x: torch.Tensor) -> torch.Tensor:
            raise KeyError

    model, other = nn.Sequential(nn.Linear(2, 2), Fails()), nn.Linear(2, 2)
    with Recorder() as recorder:
        with pytest.raises(KeyError):
            model(torch.ones(1, 2))
        running = recorder.running_module
        loss = other(torch.ones(1, 2)).sum()
    graph = capture_graph(loss, recorder=recorder)

    assert running is None
    assert [(call.class_name, call.parent) for call in graph.modules] == [("Linear", None)]


def test_calls_outside_of_modules_and_of_a_module_that_is_gone() -> None:
    """Their nodes have no module, and one whose names were not read is called by its class."""
    x = torch.ones(2, requires_grad=True)
    with Recorder() as recorder:
        before = x.exp()
        model: nn.Module = nn.Tanh()
        inside = model(before)
        del model
        loss = inside.sum()
    graph = capture_graph(loss, recorder=recorder)

    assert [(node.name, node.module) for node in graph.nodes[:3]] == [
        ("SumBackward0", None), ("TanhBackward0", 0), ("ExpBackward0", None),
    ]  # fmt: skip
    assert recorder.called_modules() == []


def test_the_modules_that_were_called_are_the_outermost_ones() -> None:
    """Each once, in order, as long as they live."""
    first, second = nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)
    with Recorder() as recorder:
        for module in (first, second, first):
            module(torch.ones(1, 2))

    assert recorder.called_modules() == [first, second]


def test_a_module_at_the_address_of_another_has_a_number_of_its_own() -> None:
    """Numbers belong to modules, not to addresses."""
    recorder = Recorder()
    first, second = nn.ReLU(), nn.Tanh()
    number = recorder._number_of(first)
    recorder._module_numbers[id(second)] = number  # as if the first were gone

    assert recorder._number_of(first) == number == 0
    assert recorder._number_of(second) == recorder._number_of(second) == 1
    assert (recorder.module_path(1, Names()), recorder.class_name(1)) == (None, "Tanh")


def test_a_forwarded_call_is_hidden_until_it_returns() -> None:
    """The mode is off the stack meanwhile; a recorder that is not active, or of another thread, hides nothing."""
    recorder = Recorder()
    hidden: list[bool] = [recorder.is_hidden]

    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            hidden.append(recorder.is_hidden)
            with ThreadPoolExecutor(1) as pool:
                hidden.append(pool.submit(lambda: recorder.is_hidden).result())
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(1).as_subclass(Asking)
    with recorder:
        hidden.append(recorder.is_hidden)
        x.exp()
    hidden.append(recorder.is_hidden)

    assert hidden == [False, False, True, False, False]


def test_what_other_threads_call_is_recorded_apart() -> None:
    """Neither calls of modules nor of functions come between those of the recorded thread."""
    model = nn.Linear(2, 2)
    with Recorder() as recorder, ThreadPoolExecutor(1) as pool:
        pool.submit(model, torch.ones(1, 2)).result()

    assert (recorder.module_windows, list(recorder.own.call_starts)) == ([], [])
    assert recorder.called_modules() == [model]


def test_a_paused_recorder_records_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has recorded stays; its mode stays only where torch.compile has compiled something."""
    monkeypatch.setattr("gradinspect.recording.recorder.has_compiled", lambda: False)
    x = torch.ones(1, requires_grad=True)
    with Recorder() as recorder:
        y = x.exp()
        recorder.pause()
        y.sin()
        number = len(recorder.own.call_starts)
        is_left = num_function_modes() == 0

    assert (number, is_left) == (1, True)


def test_a_function_with_keywords_and_one_that_fails_are_forwarded_as_they_are() -> None:
    """With their arguments, and with a traceback in which we are not."""
    x = torch.ones(2, 3, requires_grad=True)
    with Recorder():
        y = x.sum(dim=1, keepdim=True)
        z = torch.add(x, x, alpha=2)
        with pytest.raises(IndexError) as raised:
            x.sum(dim=7)

    assert (y.shape, float(z[0, 0].detach())) == ((2, 1), 3.0)
    assert [str(entry.path) for entry in raised.traceback] == [__file__]
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.ones(2, 3))


def test_a_node_without_a_line_has_none() -> None:
    """Made before or after recording, or between two calls."""
    x = torch.ones(1, requires_grad=True)
    before = x.exp()
    with Recorder() as recorder:
        during = before.sin()
    after = during.cos()
    assert before.grad_fn is not None
    assert during.grad_fn is not None
    assert after.grad_fn is not None
    frames = [recorder.frame_of(one.grad_fn._sequence_nr()) for one in (before, during, after)]

    assert [frame is None for frame in frames] == [True, False, True]
    assert list(recorder.frames.lines())[-1][0] == __file__


class Overrides(torch.Tensor):
    """Has a `__torch_function__` of its own."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Forward."""
        return super().__torch_function__(func, types, args, kwargs or {})


class Quiet(torch.Tensor):
    """Switches it off, as a parameter does."""

    __torch_function__ = torch._C._disabled_torch_function_impl


def test_only_tensors_that_override_functions_are_said_to() -> None:
    """While we watch as without us: our mode is no reason for torch to leave its fast paths."""
    x = torch.ones(1)
    asked = [(x,), (nn.Parameter(x),), (x.as_subclass(Quiet),), (object(),), (x, x.as_subclass(Overrides)), ()]
    plain = [torch.overrides.has_torch_function(arguments) for arguments in asked]
    with Recorder():
        watched = [torch.overrides.has_torch_function(arguments) for arguments in asked]

    assert watched == plain == [False, False, False, False, True, False]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_worker_is_not_recorded() -> None:
    """As those of a DataLoader; the process itself still is."""
    x = torch.ones(2, requires_grad=True)
    with Recorder() as recorder:
        child = os.fork()
        if child == 0:
            (x * 2).sum()
            os._exit(recorder.is_active or bool(recorder.own.call_starts))
        _, status = os.waitpid(child, 0)
        (x * 2).sum()

    assert os.waitstatus_to_exitcode(status) == 0
    assert len(recorder.own.call_starts) == 2


def test_an_error_of_a_listener_to_modules_does_not_reach_the_program() -> None:
    """It is noted, the module runs, and the other hooks are called."""
    noted: list[Exception] = []
    called: list[nn.Module] = []
    model = nn.Linear(3, 3)

    def fails(*_arguments: object) -> None:
        raise ZeroDivisionError

    with Recorder() as recorder:
        recorder.before_modules(fails, noted.append)
        recorder.before_modules(lambda module, _args: called.append(module), noted.append)
        recorder.after_modules(fails, noted.append)
        made = model(torch.ones(2, 3))

    assert made.shape == (2, 3)
    assert [type(error) for error in noted] == [ZeroDivisionError, ZeroDivisionError]
    assert called == [model]
