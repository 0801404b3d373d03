"""The graph that backward itself builds: its nodes, who made them, and that nothing else changes."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import gradinspect
from torch import nn
from torch.nn import functional

from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.second_order import gradients_with_graph
from gradinspect.storage import read_graph
from gradinspect.torch_api.nodes import next_sequence_nr


def second(loss: torch.Tensor, recorder: Recorder | None = None) -> Graph:
    """Record the graph of the leaves' gradients."""
    outputs = outputs_in(loss)
    first = record_graph(outputs, Moment(source="test"), recorder)
    gradients, makers = gradients_with_graph(first, outputs, [torch.ones_like(loss)])
    return record_graph(gradients, Moment(source="test", makers=makers), recorder)


def test_a_cube_by_hand() -> None:
    """The gradient of x^3 is 3 x^2: a power and a product, both made by the power's backward."""
    x = torch.tensor([2.0], requires_grad=True)
    found = second((x**3).sum())
    makers = {node.name: node.made_by for node in found.nodes}

    assert found.captured_at.is_second_order
    assert [root.name for root in found.roots] == ["#2.grad"]
    assert {name for name, maker in makers.items() if maker == "PowBackward0"} >= {"MulBackward0", "PowBackward0"}
    assert makers["AccumulateGrad"] is None
    assert x.grad is None


def test_nodes_have_the_place_of_their_maker() -> None:
    """Module and line are those of the forward op; the nodes of the forward pass have no maker."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    with Recorder() as recorder:
        loss = functional.mse_loss(model(torch.randn(5, 3)), torch.zeros(5, 1))
    found = second(loss, recorder)
    classes = {
        (node.made_by, found.modules[node.module].class_name)
        for node in found.nodes
        if node.made_by is not None and node.module is not None
    }

    assert ("TanhBackward0", "Tanh") in classes
    assert {maker for maker, name in classes if name == "Linear"} <= {"AddmmBackward0", "TBackward0"}
    assert any(node.made_by is None and node.name == "TanhBackward0" for node in found.nodes)
    assert all(node.frame is not None for node in found.nodes if node.made_by == "TanhBackward0")


def on_thread(function: Callable[[], Any]) -> Any:
    """Run on a thread of its own, whose sequence numbers begin at 0."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def here(function: Callable[[], Any]) -> Any:
    """Run on this thread."""
    return function()


@pytest.mark.parametrize(("forward", "run"), [(here, here), (here, on_thread), (on_thread, here)])
def test_nodes_of_the_forward_pass_have_no_maker(
    forward: Callable[[Callable[[], Any]], Any], run: Callable[[Callable[[], Any]], Any]
) -> None:
    """Nor do they lose their module, where the backward of another thread makes nodes of the same numbers."""
    found = on_thread(lambda: second_of(forward, run))  # else the tests before have used up numbers, which takes long
    classes = {
        node.name: (node.made_by, None if node.module is None else found.modules[node.module].class_name)
        for node in found.nodes
        if node.made_by is None and node.leaf is None
    }

    assert classes["TanhBackward0"] == (None, "Tanh")
    assert classes["AddmmBackward0"] == (None, "Linear")
    assert all(node.made_by for node in found.nodes if node.name == "MmBackward0")
    assert found.warnings == ()


def second_of(forward: Callable[[Callable[[], Any]], Any], run: Callable[[Callable[[], Any]], Any]) -> Graph:
    """Record the second graph on one thread, of a forward pass on another."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    start = next_sequence_nr()
    with Recorder() as recorder:
        outputs = outputs_in(forward(lambda: model(torch.randn(5, 3)).square().mean()))
        first = record_graph(outputs, Moment(source="test"), recorder)

        def record() -> Graph:
            while next_sequence_nr() < start:
                torch.ones((), requires_grad=True).exp()
            gradients, makers = gradients_with_graph(first, outputs, [torch.ones(())], recorder.others)
            return record_graph(gradients, Moment(source="test", makers=makers), recorder)

        second_graph: Graph = run(record)
    return second_graph


def test_the_engine_agrees_on_who_made_what() -> None:
    """Anomaly mode keeps the parent of each node that backward makes: the same node."""
    x = torch.randn(4, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        outputs = outputs_in((x.sin() * x.exp()).cumsum(0).sum())
        first = record_graph(outputs, Moment(source="test"))
        (gradient,), makers = gradients_with_graph(first, outputs, [torch.ones(())])
    assert isinstance(gradient.value, torch.Tensor)
    todo: list[Any] = [gradient.value.grad_fn]
    num_made = 0
    for node in todo:
        parent = node.metadata.get("parent_")
        maker = makers.get(node._sequence_nr())
        assert (maker and (maker.name, maker.identity)) == (parent and (parent.name(), parent._sequence_nr()))
        num_made += maker is not None
        todo += [after for after, _ in node.next_functions if after is not None and after not in todo]

    assert num_made > 5


def test_a_linear_function_builds_no_graph() -> None:
    """Its gradients depend on nothing."""
    x = torch.randn(3, requires_grad=True)

    with pytest.raises(GradInspectError, match="depend on nothing that requires grad"):
        second((x * 2).sum())


def test_a_backward_that_fails_is_told_with_its_error() -> None:
    """In the first line of what torch says; nothing of ours stays in the traceback."""
    loss = (torch.randn(3, requires_grad=True) ** 3).sum()
    loss.backward()

    with pytest.raises(GradInspectError, match=r"^Backward of 'test' fails: Trying to backward .*$") as caught:
        second(loss)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_every_verb_takes_it(tmp_path: Path) -> None:
    """Trace it, save it, read it again, draw it, step through it; the script ends before its own backward."""
    script = tmp_path / "cube.py"
    script.write_text(
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\nloss = (x ** 3).sum()\nloss.backward()\n"
    )
    traced = gradinspect("trace", script, "--create-graph")
    saved = gradinspect("export", script, "--create-graph", "-o", tmp_path / "second.json", "-o", tmp_path / "s.dot")
    again = gradinspect("trace", tmp_path / "second.json")

    assert traced.returncode == 0
    assert traced.stdout.startswith("the graph built by backward #1  cube.py:4  loss.backward()\n")
    assert "root x.grad: #0 MulBackward0" in traced.stdout
    assert saved.returncode == 0
    assert again.stdout == traced.stdout
    assert read_graph(tmp_path / "second.json").captured_at.is_second_order
    assert "made by the backward of PowBackward0" in (tmp_path / "s.dot").read_text()


def test_stepping_through_it(tmp_path: Path) -> None:
    """It begins with the gradient that was asked for, and agrees with the engine."""
    script = tmp_path / "cube.py"
    script.write_text(
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\nloss = (x ** 3).sum()\nloss.backward()\n"
    )
    done = gradinspect("step", script, "--create-graph", "--grad-output", "ones", "--script", _commands(tmp_path))
    refused = gradinspect("step", script, "--create-graph")

    assert "[ 6, 12]" in done.stdout  # the second derivative of x^3
    assert "1 leaf gradient compared with the sums of these steps: bit-equal." in done.stdout
    assert refused.returncode == 2
    assert refused.stderr == (
        "gradinspect: The output 'x.grad' (f32[2]) is not a scalar, so backward needs a gradient to start with. Choose "
        "one: --grad-output ones, random, or rows for one backward per element.\n"
    )


def _commands(folder: Path) -> Path:
    file = folder / "commands.txt"
    file.write_text("watch x\ncontinue\n")
    return file


def test_it_is_not_for_those_who_watch() -> None:
    """`grads` looks at the program's own backward."""
    done = gradinspect("grads", "samples/mlp.py", "--create-graph")

    assert done.returncode == 2
    assert "'grads' has no option '--create-graph'." in done.stderr


class Ignores(torch.autograd.Function):
    """Gives its second argument no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Add."""
        ctx.save_for_backward(x)
        return x**2 + y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Differentiate by the first alone."""
        return grad * 2 * ctx.saved_tensors[0], None


def test_a_leaf_that_gets_no_gradient_is_left_out() -> None:
    """The others have theirs."""
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    assert len(second(Ignores.apply(x, y).sum()).roots) == 1
