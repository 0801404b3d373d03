"""What else is said, or is not, of tensors without a gradient: in steps with other ends than the usual ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cut_steps import Step, sgd, texts, watched
from torch import nn
from torch.nn import functional

X = torch.ones(3, 2)


def in_a_helper() -> Step:
    """Detach in a function that the step calls."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def features() -> torch.Tensor:
        return first(X).detach()

    def step() -> None:
        optimizer.zero_grad()
        loss = last(features()).square().mean()
        loss.backward()
        optimizer.step()

    return step


def without_gradients() -> Step:
    """Compute a part under no_grad."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        with torch.no_grad():
            hidden = first(X)
        last(hidden).square().mean().backward()
        optimizer.step()

    return step


def made_in_the_step() -> Step:
    """Let an optimizer hold what the step makes, and nothing reads."""
    model = nn.Linear(2, 1)
    kept: list[Any] = []

    def step() -> None:
        extra = torch.zeros(2).requires_grad_()
        optimizer = sgd(model, extra)
        model(X).square().mean().backward()
        optimizer.step()
        kept.append(optimizer)

    return step


def of_two_lines() -> Step:
    """Call backward on two lines, and read the gradient of a result."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle = w * 2
        middle.sum().backward()
        w.exp().sum().backward()
        return middle.grad

    return step


def result_without_call() -> Step:
    """Read the gradient of a result that was made before."""
    w = torch.ones(2, requires_grad=True)
    before = w * 2

    def step() -> Any:
        w.exp().sum().backward()
        return before.grad

    return step


def before_backward() -> Step:
    """Read one before there was any backward."""
    w = torch.ones(2, requires_grad=True)
    seen: list[Any] = []

    def step() -> None:
        seen.append(w.grad)
        if len(seen) == 2:
            w.exp().sum().backward()

    return step


def set_to_none() -> Step:
    """Read it on a line after one that sets another to None."""
    w, v = (torch.ones(2, requires_grad=True) for _ in range(2))

    def step() -> Any:
        (w * 2).sum().backward()
        w.grad = None
        return v.grad

    return step


def by_hand() -> Step:
    """Use a gradient without its graph, with no optimizer."""
    model = nn.Linear(2, 1)

    def step() -> None:
        model.zero_grad()
        x = X.clone().requires_grad_()
        loss = model(x).square().mean()
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        (loss + gradient.square().sum()).backward()

    return step


def of_plain_tensor() -> Step:
    """Do so with a tensor that an optimizer holds."""
    w = torch.ones(2, requires_grad=True)
    optimizer = sgd(w)

    def step() -> None:
        optimizer.zero_grad()
        x = torch.ones(2, requires_grad=True)
        loss = (w * x).square().sum()
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        (loss + gradient.square().sum()).backward()

    return step


def vector_with_constant() -> Step:
    """Start backward from a vector, to which a constant is added."""
    first, last = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = sgd(first, last)

    def step() -> None:
        optimizer.zero_grad()
        y = last(X) + first(X) + first.weight.square().mean().detach()
        y.backward(torch.ones(3, 1))
        optimizer.step()

    return step


def loss_from_before() -> Step:
    """Start from a loss that was made before, of which nothing is known."""
    model, extra = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer, loss = sgd(model, extra), model(X).square().mean()

    def step() -> None:
        for _ in range(2):
            model(X).square().mean().backward()
        loss.backward(retain_graph=True)
        optimizer.step()

    return step


def one_of_the_experts() -> Step:
    """Call one of several modules in a list."""
    experts, other = nn.ModuleList([nn.Linear(2, 1) for _ in range(2)]), nn.ModuleDict({"a": nn.Linear(2, 1)})
    optimizer = sgd(experts, other)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts, self.other = experts, other

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.experts[0](x)
            return found

    net = Net()

    def step() -> None:
        optimizer.zero_grad()
        net(X).square().mean().backward()
        optimizer.step()

    return step


def frozen_later() -> Step:
    """Step with what is frozen, and with what has a gradient."""
    model, frozen = nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False)
    optimizer = sgd(model, frozen)

    def step() -> None:
        optimizer.zero_grad()
        (model(X) + frozen(X)).square().mean().backward()
        optimizer.step()

    return step


def wanted_edges() -> Step:
    """Ask for gradients of edges, one of which is not reached."""
    w = torch.ones(2, requires_grad=True)

    def step() -> Any:
        middle, other = w * 2, w * 3
        edges = [torch.autograd.graph.get_gradient_edge(one) for one in (middle, other)]
        return torch.autograd.grad(middle.sum(), edges)

    return step


def of_scores() -> Step:
    """Take probabilities for their logarithms."""
    model, target = nn.Linear(2, 2), torch.full((3, 2), 0.5)

    def step() -> None:
        probabilities = model(X).softmax(1)
        loss = functional.kl_div(probabilities, target, reduction="batchmean")
        loss.backward()

    return step


def of_nothing() -> Step:
    """Call backward of what has no graph at all."""

    def step() -> None:
        loss = X.square().mean()
        loss.backward()

    return step


def stepped_inside() -> Step:
    """Step in a hook, when backward has not reached all."""
    first, last = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = sgd(first, last)
    last.bias.register_post_accumulate_grad_hook(lambda _bias: optimizer.step())

    def step() -> None:
        optimizer.zero_grad()
        last(first(X)).square().mean().backward()

    return step


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (in_a_helper, ["GI301 read=-2 detached=-2 called=2 used=2 backward=3 step=4 Linear.weight Linear.bias"]),
        (without_gradients, ["GI301 read=3 detached=2 used=4 backward=4 step=5 first.weight first.bias"]),
        (made_in_the_step, ["GI304 made=1 backward=3 step=4 extra"]),
        (of_two_lines, ["GI305 made=1 backward=3 read=4 middle"]),
        (result_without_call, ["GI305 backward=1 read=2 before"]),
        (before_backward, []),
        (set_to_none, ["GI304 backward=1 wanted=3 v"]),
        (by_hand, ["GI402 gradient=4 used=5 backward=5"]),
        (of_plain_tensor, ["GI402 gradient=4 used=5 backward=5"]),
        (vector_with_constant, []),
        (loss_from_before, []),
        (one_of_the_experts, ["GI304 backward=2 step=3 other.a.weight other.a.bias"]),
        (frozen_later, []),
        (wanted_edges, []),
        (stepped_inside, []),
        (of_scores, ["GI352 applied=1 loss=2 backward=3"]),
        (of_nothing, ["GI302 made=1 backward=2"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_found_in_a_step(make: Callable[[], Step], expected: list[str]) -> None:
    """With the lines, counted from that of the step, and the tensors."""
    assert texts(make, watched(make)[0]) == expected


def unread_beside_a_penalty() -> Step:
    """Call autograd.grad before each backward, and hold what nothing reads."""
    model, extra = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = sgd(model, extra)

    def step() -> None:
        optimizer.zero_grad()
        x = X.clone().requires_grad_()
        loss = model(x).square().mean()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + gradient.square().sum()).backward()
        optimizer.step()

    return step


def test_backward_calls_are_counted() -> None:
    """Not those of autograd.grad, which belong to them."""
    ((finding,), _) = watched(unread_beside_a_penalty)

    assert "in 2 observed backward calls" in finding.text


def bootstrap() -> Step:
    """Let gradients flow through a target."""
    model = nn.Linear(2, 1)

    def step() -> None:
        target = torch.ones(3, 1) + 0.9 * model(X + 1)
        functional.mse_loss(model(X), target).backward()

    return step


@pytest.mark.parametrize(
    ("make", "said"),
    [(bootstrap, [1, 2])],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_may_be_meant_is_noted(make: Callable[[], Step], said: list[int]) -> None:
    """Once, with the lines."""
    _, cuts = watched(make)
    first, notes = make().__code__.co_firstlineno, list(cuts.notes())

    assert len(notes) == bool(said)
    assert all(f":{first + line}" in note for line in said for note in notes)


def test_a_tensor_is_waited_for_until_a_call_reaches_it() -> None:
    """It is named; one that is gone is not."""
    waits: list[str | None] = []

    def make() -> Step:
        one, other = (torch.ones(2, requires_grad=True) for _ in range(2))
        optimizer = sgd(one, other)

        def step() -> None:
            for tensor in (one, other):
                tensor.exp().sum().backward()
                optimizer.step()
                waits.append(session_cuts[0].waits())

        return step

    session_cuts: list[Any] = []
    watched(make, steps=1, on_start=session_cuts.append)

    assert waits == ["no gradient had reached other", None]
