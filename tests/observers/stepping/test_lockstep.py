"""Stepping through backward: the engine's gradients to the bit, hooks once, and each formula by hand beside it."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from memory_programs import PROGRAMS
from step_programs import Silent, leaves_in, stepped
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from gradinspect.analyses.gradients.stepping import Step
from gradinspect.observers.gradients.comparing import is_same
from gradinspect.observers.stepping.expression_eval import evaluate
from gradinspect.observers.stepping.lockstep import LiveStep, Lockstep
from gradinspect.recording.capture import Moment, record_graph
from gradinspect.recording.outputs import OutputTensor, outputs_in
from gradinspect.recording.values.tensor_preview import show_tensor

NAN = float("nan")


def gradients_of(output: torch.Tensor) -> list[torch.Tensor | None]:
    """List the gradients of all leaves behind a tensor, in the order of a walk."""
    seen = {output.grad_fn: None}
    for node in (order := [output.grad_fn]):
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen[after] = None
                order.append(after)
    return [node.variable.grad for node in order if hasattr(node, "variable")]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_are_bit_equal(program: Callable[[], torch.Tensor]) -> None:
    """With and without steps; every formula by hand gives what the engine passes on."""
    torch.manual_seed(0)
    plain = program()
    plain.backward()
    expected = gradients_of(plain)
    torch.manual_seed(0)
    output = program()
    listener = Silent()
    outcome = stepped(outputs_in(output), [torch.ones_like(output)], listener)
    actual = gradients_of(output)

    assert len(expected) == len(actual) == outcome.num_leaves
    assert all(is_same(left, right, to_the_bit=True) for left, right in zip(expected, actual, strict=True))
    assert outcome.differing == outcome.changed == ()
    assert outcome.differing_leaves == ()
    assert len(listener.steps) == len({step.node for step in listener.steps}) == len(outcome.graph.nodes)
    assert outcome.num_equal + sum(count for _, count in outcome.watched) + outcome.num_leaves == outcome.num_steps


def steps_of(*outputs: torch.Tensor, gradients: Any = None) -> tuple[dict[str, Step], Any]:
    """Step through backward and return the steps by class, and the end."""
    listener = Silent()
    named = [OutputTensor("y", output) for output in outputs]
    outcome = stepped(named, gradients or [torch.ones_like(output) for output in outputs], listener)
    return {outcome.graph.nodes[step.node].name: step for step in listener.steps}, outcome


def test_a_broadcast_is_summed_by_the_engine() -> None:
    """The formula gives a matrix, the scalar gets its sum."""
    x, y = torch.randn(4, 4, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    steps, _ = steps_of((x * y).sum())
    wide, narrow = steps["MulBackward0"].outgoing

    assert wide.made_shape is None
    assert narrow.made_shape == (4, 4)
    assert narrow.tensor == show_tensor(x.detach().sum())


def test_gradients_are_added_up() -> None:
    """A tensor used three times gets three gradients; a leaf that had one is added to."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.tensor([10.0, 10.0])
    steps, outcome = steps_of((x * x + x).sum())

    assert steps["AccumulateGrad"].incoming[0].num_added == 3
    assert steps["AccumulateGrad"].before == show_tensor(torch.tensor([10.0, 10.0]))
    assert x.grad.tolist() == [13.0, 15.0]
    assert outcome.num_leaves == 1


@pytest.mark.filterwarnings("default")  # torch.compile fails where its own warnings are errors
def test_a_compiled_node_shows_what_it_keeps() -> None:
    """It drops that while it runs, so it is read before; each tensor is named after what made it."""
    torch._dynamo.reset()
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    steps, outcome = steps_of(torch.compile(lambda x: x.exp().sin().sum(), backend="aot_eager")(x))
    (compiled,) = [step for name, step in steps.items() if name == "CompiledFunctionBackward"]

    assert [value.name for value in compiled.saved] == ["aten.exp[0]"]
    assert compiled.saved[0].tensor == show_tensor(x.detach().exp())
    assert outcome.num_leaves == 1


def test_unused_outputs_get_no_gradient() -> None:
    """Two of three parts of an unbind are never used: their gradients are undefined."""
    x = torch.randn(3, 2, requires_grad=True)
    steps, outcome = steps_of(x.unbind()[1].sum())

    assert [part.tensor is None for part in steps["UnbindBackward0"].incoming] == [True, False, True]
    assert outcome.num_equal == 2


def test_hooks_run_once_and_are_seen() -> None:
    """A gradient changed by a hook is distinguished from what was passed on."""
    calls = []

    def twice(gradient: torch.Tensor) -> torch.Tensor:
        calls.append("tensor")
        return gradient * 2

    def half(outgoing: Any, _incoming: Any) -> Any:
        calls.append("node")
        return tuple(None if gradient is None else gradient / 2 for gradient in outgoing)

    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.register_hook(twice)
    y.retain_grad()
    assert y.grad_fn is not None
    y.grad_fn.register_hook(half)
    x.register_hook(twice)
    steps, outcome = steps_of(y.exp().sum())

    assert calls == ["tensor", "node", "tensor"]
    assert steps["MulBackward0"].incoming[0].is_changed
    assert steps["MulBackward0"].outgoing[0].is_changed
    assert steps["AccumulateGrad"].incoming[0].is_changed
    assert len(outcome.differing) == 1
    assert len(outcome.changed) == 2
    assert y.grad is not None
    assert torch.equal(y.grad, 2 * y.exp().detach())
    assert x.grad is not None
    assert torch.equal(x.grad, 6 * y.exp().detach())
    assert outcome.num_leaves == 1


def test_a_custom_backward_runs_once() -> None:
    """It is the user's code, so it is not called again."""
    runs = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            runs.append(gradient)
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    _, outcome = steps_of(Double.apply(x).sum())

    assert len(runs) == 1
    assert outcome.watched == (("the backward of a custom Function is the program's code", 1),)


def test_a_backward_inside_backward() -> None:
    """A reentrant checkpoint adds to a weight that is used outside of it too: one step per node, and the right sum."""
    layer = nn.Linear(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    inside = checkpoint(layer, layer(x), use_reentrant=True)
    listener = Silent()
    loss = (inside + layer(x)).sum()
    outcome = stepped(outputs_in(loss), [torch.ones(())], listener)

    assert len(listener.steps) == len({step.node for step in listener.steps}) == len(outcome.graph.nodes)
    assert outcome.differing_leaves == ()
    assert outcome.num_leaves == 3
    assert outcome.changed == ()


def test_a_leaf_alone() -> None:
    """Backward may begin at a leaf."""
    x = torch.tensor(2.0, requires_grad=True)
    steps, outcome = steps_of(x)

    assert list(steps) == ["AccumulateGrad"]
    assert x.grad == torch.tensor(1.0)
    assert outcome.num_leaves == 1


def test_complex_views_and_dtypes() -> None:
    """CopySlices, complex numbers and casts agree too."""
    x = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    w = torch.randn(3, requires_grad=True)
    base = (x * w).clone()
    base[1:] *= 2
    half = torch.randn(3, dtype=torch.bfloat16, requires_grad=True)
    steps, outcome = steps_of((base.abs() * half).sum())

    assert "CopySlices" in steps
    assert outcome.differing == ()
    assert outcome.num_leaves == 3
    assert x.grad is not None
    assert w.grad is not None
    assert half.grad is not None
    assert (x.grad.dtype, w.grad.dtype, half.grad.dtype) == (torch.complex64, torch.float32, torch.bfloat16)


def test_gradients_that_are_taken_out() -> None:
    """`autograd.grad` returns what the steps add up to, of leaves and of what is in between."""
    x = torch.randn(3, requires_grad=True)
    y = x * x
    loss = (y.exp() + y).sum()
    outputs = [OutputTensor("loss", loss)]
    graph = record_graph(outputs, Moment(source="test", kind="grad"))
    inputs = [OutputTensor(None, x), OutputTensor(None, y)]
    steps = Lockstep(graph, outputs, [torch.ones_like(loss)], Silent(), _never_leaves, inputs=inputs)
    found = torch.autograd.grad(loss, [x, y])
    outcome = steps.finish(found)

    assert outcome.num_leaves == 2
    assert outcome.differing_leaves == ()
    assert x.grad is None


def _never_leaves(_steps: Lockstep) -> None:
    raise AssertionError


def test_nothing_is_left() -> None:
    """Hooks and tensors are released, even if the engine failed."""
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    outputs = [OutputTensor("loss", loss)]
    graph = record_graph(outputs, Moment(source="test"))
    listener = Silent()
    steps = Lockstep(graph, outputs, [torch.ones_like(loss)], listener, _never_leaves)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    steps.close()
    seen = len(listener.steps)
    (x * 2).sum().backward()

    assert len(listener.steps) == seen


@pytest.mark.parametrize(
    ("left", "right", "to_the_bit", "expected"),
    [
        ([1.0], [1.0], True, True), ([0.0], [-0.0], False, True), ([0.0], [-0.0], True, False),
        ([NAN], [NAN], True, True), ([NAN, 0.0], [NAN, -0.0], False, True), ([1.0], [2.0], False, False),
        ([1.0], [1.0, 1.0], False, False),
    ],
)  # fmt: skip
def test_same(left: list[float], right: list[float], to_the_bit: bool, expected: bool) -> None:
    """NaN is equal to itself; the sign of zero counts only to the bit."""
    assert is_same(torch.tensor(left), torch.tensor(right), to_the_bit=to_the_bit) is expected
    assert is_same(None, torch.tensor(right)) is False
    assert is_same(None, None) is True


def test_strange_tensors_are_shown() -> None:
    """Sparse, nested, complex, empty, half and integer tensors."""
    sparse = torch.tensor([5.0, 0.0]).to_sparse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])

    assert show_tensor(sparse).values == (5.0, 0.0)
    assert show_tensor(nested).values is None
    assert show_tensor(torch.tensor([1 + 2j])).values == ("(1+2j)",)
    assert show_tensor(torch.zeros(0)).values == ()
    assert show_tensor(torch.tensor([NAN, 1.0], dtype=torch.bfloat16)).num_nonfinite == 1
    assert show_tensor(torch.tensor([0, 3])).norm is None
    assert show_tensor(torch.ones(100)).values is None


def test_an_expression_of_the_user() -> None:
    """Tensors as previews, other values as their repr, errors as a sentence."""
    found: list[Any] = []

    class Looking(Silent):
        def ran(self, live: LiveStep) -> bool:
            if graph.nodes[live.step.node].name == "MulBackward0":
                found.extend(evaluate(text, live, graph, 10) for text in texts)
            return True

    texts = [
        "saved.self",
        "incoming[0] + 1",
        "node.name()",
        "saved.result",
        "1/0",
        "saved",
        "]",
        "incoming",
        "[incoming[0], None]",
    ]
    x = torch.tensor([3.0], requires_grad=True)
    outputs = [OutputTensor("y", x * x)]
    graph = record_graph(outputs, Moment(source="test"))
    steps = Lockstep(graph, outputs, [torch.ones(1)], Looking(), _never_leaves)
    outputs[0].value.backward()
    steps.finish()

    assert found[0] == (show_tensor(torch.tensor([3.0])),)
    assert found[1] == (show_tensor(torch.tensor([2.0])),)
    assert found[2:6] == [
        ("'MulBackward0'",),
        ("AttributeError: This node did not save 'result'; it saved other, self.",),
        ("ZeroDivisionError: division by zero",),
        ("other, self",),
    ]
    assert found[6][0].startswith("SyntaxError")
    assert found[7:] == [(show_tensor(torch.ones(1)),), (show_tensor(torch.ones(1)), "None")]


def test_modules_see_nothing() -> None:
    """No forward hook, no buffer, no mode of a module changes."""
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    output = model(torch.randn(4, 3)).sum()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    steps_of(output)

    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert leaves_in(list(model.parameters())) == list(model.parameters())


def on_meta() -> torch.Tensor:
    """A loss of tensors that have shapes, but no values."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).to("meta")
    return model(torch.ones(4, 2, device="meta")).sum()


def on_fake_tensors() -> torch.Tensor:
    """The same under a mode of the program's own."""
    with FakeTensorMode():
        return nn.Linear(2, 3)(torch.ones(4, 2)).sum()


@pytest.mark.parametrize("program", [on_meta, on_fake_tensors])
def test_what_has_no_values_is_not_said_to_differ(program: Callable[[], torch.Tensor]) -> None:
    """No hook is made responsible for it; it is counted as not compared."""
    output = program()
    outcome = stepped(outputs_in(output), [torch.ones_like(output)], Silent())

    assert outcome.is_complete
    assert (outcome.differing, outcome.changed, outcome.differing_leaves) == ((), (), ())
    assert (outcome.num_equal, outcome.num_leaves) == (0, 0)
    assert outcome.num_unread_leaves + sum(count for _, count in outcome.watched) == outcome.num_steps
    assert outcome.num_unread_leaves > 0


def test_one_that_differs_still_does_beside_one_without_values() -> None:
    """A hook that changes a gradient is found on the CPU, in the same graph."""
    leaf = torch.ones(2, requires_grad=True)
    changed = leaf * 2
    changed.register_hook(lambda gradient: gradient * 2)
    other = torch.ones(2, requires_grad=True, device="meta") * 2
    _, outcome = steps_of(changed, other)

    assert [outcome.graph.nodes[number].name for number in outcome.changed] == ["MulBackward0"]
    assert (outcome.num_leaves, outcome.num_unread_leaves) == (1, 1)
