"""A program that counts, lists and takes off function modes finds its own ones and no other, wherever it looks."""

import threading
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils.checkpoint import checkpoint


class Counting(TorchFunctionMode):
    """A mode of the program, which looks at the stack itself."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look once an addition is called."""
        if func is torch.Tensor.add:
            look("inside a mode")
        return func(*args, **(kwargs or {}))


def look(where: str) -> None:
    """Print what is on the stack, as each function tells it."""
    number = torch._C._len_torch_function_stack()
    by_place = [torch._C._get_function_stack_at(place) for place in range(number)]
    listed = torch.overrides._get_current_function_mode_stack()
    top = torch.overrides._get_current_function_mode()
    assert by_place == listed == _get_current_function_mode_stack()
    assert top is (listed[-1] if listed else None)
    print(where, [type(mode).__name__ for mode in listed], torch._C._is_torch_function_mode_enabled())


class Doubled(torch.autograd.Function):
    """Looks in both directions."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Look, and double."""
        look("custom forward")
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Look, and double."""
        look("custom backward")
        return gradient * 2


def looking(where: str) -> Any:
    """Make a hook that looks."""
    return lambda *_: look(where)


torch.manual_seed(0)
layer = torch.nn.Linear(3, 3)
layer.register_forward_hook(looking("module hook"))
layer.weight.register_hook(looking("tensor hook"))
layer.weight.register_post_accumulate_grad_hook(looking("after accumulation"))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
optimizer.register_step_pre_hook(looking("optimizer hook"))


def block(x: torch.Tensor) -> torch.Tensor:
    """Look when it is computed, and computed again."""
    look("checkpointed block")
    return layer(x).tanh()


def step() -> None:
    """Train."""
    optimizer.zero_grad()
    loss = Doubled.apply(checkpoint(block, torch.ones(2, 3), use_reentrant=False)).sum()
    loss.grad_fn.register_prehook(looking("node hook"))
    loss.backward()
    optimizer.step()


look("before")
step()
with Counting() as mode:
    look("with a mode")
    step()
    torch.ones(2).add(1)
    taken = [_pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    print("taken off", [type(one).__name__ for one in taken], taken == [mode])
    look("without it")
    for one in reversed(taken):
        _push_mode(one)
with torch.device("cpu"), Counting():
    look("two modes")
    step()


def work() -> None:
    """Look before and after the thread has called torch."""
    look("thread")
    torch.ones(2).mul(2)
    look("thread again")


thread = threading.Thread(target=work)
thread.start()
thread.join()
look("after")
