"""What steps of optimizers write, as the log of writes has it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradinspect as gi
from gradinspect.checks.evidence.in_place.writes import SeenWrite
from gradinspect.checks.evidence.values.calls import TorchCallLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key


def weights(count: int = 2) -> list[nn.Parameter]:
    """Make parameters that have gradients."""
    made = [nn.Parameter(torch.ones(3)) for _ in range(count)]
    for weight in made:
        weight.grad = torch.ones(3)
    return made


def seen(run: Callable[[], object], tensors: Sequence[Tensor]) -> list[list[SeenWrite]]:
    """Run something, and return the writes to each tensor that were noted."""
    with Recorder() as recorder, TorchCallLog(recorder, Dataflow(recorder)) as log:
        run()
    return [log.writes.since(storage_key(tensor) or 0, -1) for tensor in tensors]


KINDS: list[Any] = [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad, torch.optim.RMSprop]


@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_torch_is_one_write_to_each_parameter(kind: Any, options: dict[str, Any]) -> None:
    """From the version before to that after, by the name of the optimizer; none where there is no gradient."""
    held = weights(3)
    held[2].grad = None
    optimizer = kind(held, lr=0.1, **options)
    optimizer.step()
    before = [weight._version for weight in held]
    found = seen(optimizer.step, held)

    assert [[(one.op, one.optimizer) for one in writes] for writes in found] == [
        *([[("optimizer.step()", "optimizer")]] * 2), [],
    ]  # fmt: skip
    assert [writes[0].versions for writes in found[:2]] == [
        (then, weight._version) for then, weight in zip(before, held[:2], strict=False)
    ]
    assert all(weight._version > then for then, weight in zip(before, held[:2], strict=False))


def test_steps_in_a_row_are_one_write() -> None:
    """While no node is made that could save what is between them."""
    held = weights(1)
    optimizer = torch.optim.SGD(held, lr=0.1)

    def run() -> None:
        for _ in range(2):
            for _ in range(50):
                optimizer.step()
            held[0].exp()

    (found,) = seen(run, held)

    assert [one.versions for one in found] == [(0, 50), (50, 100)]


def test_a_fused_step_writes_whatever_the_version_says() -> None:
    """With what was there before."""
    held = weights(1)
    optimizer = torch.optim.Adam(held, lr=0.1, fused=True)
    held[0].exp()
    ((write,),) = seen(optimizer.step, held)

    assert write.content is not None


class Own(torch.optim.SGD):
    """An optimizer with a step of its own."""

    def step(self, closure: Any = None) -> None:
        """Subtract the gradient by hand."""
        with torch.no_grad():
            for weight in self.param_groups[0]["params"]:
                weight.sub_(weight.grad).mul_(0.9)


def with_closure(held: list[nn.Parameter]) -> None:
    """Step with a closure."""
    torch.optim.SGD(held, lr=0.1).step(lambda: 0.0)


def with_hook(held: list[nn.Parameter]) -> None:
    """Step with a hook that writes too."""
    optimizer = torch.optim.SGD(held, lr=0.1)

    def double(*_step: object) -> None:
        held[0].data.mul_(2)

    optimizer.register_step_pre_hook(double)
    optimizer.step()


def by_hand(held: list[nn.Parameter]) -> None:
    """Step by code of the program."""
    Own(held, lr=0.1).step()


def at_a_tensor_rate(held: list[nn.Parameter]) -> None:
    """Step at a rate that may have a graph."""
    torch.optim.SGD(held, lr=torch.tensor(0.1), foreach=False).step()


@pytest.mark.parametrize(
    ("run", "ops"),
    [
        (with_closure, ["add_"]),
        (with_hook, ["mul_", "add_"]),
        (by_hand, ["sub_", "mul_"]),
        (at_a_tensor_rate, ["add_"]),
    ],
)
def test_code_of_the_program_in_a_step_is_looked_at(run: Callable[[list[nn.Parameter]], None], ops: list[str]) -> None:
    """Operator by operator."""
    held = weights(1)
    (found,) = seen(lambda: run(held), held)

    assert [one.op for one in found] == ops


def test_a_step_that_fails_is_over() -> None:
    """What it has written is noted, and so is what comes afterwards."""
    first, second = weights()
    second.grad = torch.ones(3, dtype=torch.float32).to_sparse()
    optimizer = torch.optim.Adam([first, second], lr=0.1, foreach=False)

    def run() -> None:
        with pytest.raises(RuntimeError):
            optimizer.step()
        with torch.no_grad():
            first.add_(1)
            first.mul_(2)

    (found, _) = seen(run, [first, second])

    assert [one.op for one in found][-2:] == ["add_", "mul_"]


def test_what_a_program_has_put_into_torch_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may write to anything."""
    held = weights(1)
    other = torch.ones(2)
    original = torch._foreach_add_

    def wrapper(*arguments: Any, **options: Any) -> Any:
        other.add_(1)
        return original(*arguments, **options)

    monkeypatch.setattr(torch, "_foreach_add_", wrapper)
    found = seen(torch.optim.SGD(held, lr=0.1, foreach=True).step, [other, *held])

    assert [[one.op for one in writes] for writes in found] == [["add_"], ["_foreach_add_"]]


def test_a_step_between_forward_and_backward_is_found() -> None:
    """With the line that calls it."""
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.ones(2, 3)).sum().backward()

    def step() -> None:
        loss = net(net.weight * 2).sum()
        optimizer.step()
        loss.backward()

    (found,) = gi.check(step, steps=1)

    assert found.code == "GI102"
    assert "modified afterwards by optimizer.step()" in found.text
    assert [place.code for place in found.places if place.role == "written"] == ["optimizer.step()"]
