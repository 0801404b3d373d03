"""What libraries replace in torch is called as often, and in the same order, as without us."""

import functools
import threading
import warnings
from unittest import mock

import fingerprint
import torch
from torch import nn

events = []


def counted(name, original):
    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        events.append(name)
        return original(*args, **kwargs)

    return wrapper


class Proxy:
    """As wrapt has it: no function, but an object that makes another when it is looked up."""

    def __init__(self, name, wrapped, instance=None):
        self.name, self.__wrapped__, self.instance = name, wrapped, instance

    def __get__(self, instance, owner):
        return Proxy(self.name, self.__wrapped__, instance)

    def __call__(self, *args, **kwargs):
        events.append(self.name)
        return self.__wrapped__(*(() if self.instance is None else (self.instance,)), *args, **kwargs)


def log_partial(name, original, *args, **kwargs):
    events.append(name)
    return original(*args, **kwargs)


torch.manual_seed(0)
for holder, name in (
    (torch.Tensor, "backward"), (torch.Tensor, "backward"), (torch.autograd, "grad"), (torch.autograd, "backward"),
    (torch.Tensor, "add"), (torch.Tensor, "add_"), (torch.Tensor, "relu"), (torch.Tensor, "item"), (torch, "exp"),
    (torch.Tensor, "__rsub__"), (torch.Tensor, "register_hook"),
    (torch._C._nn, "gelu"), (nn.functional, "max_pool1d"), (nn.functional, "dropout"), (nn.functional, "mse_loss"),
    (nn.Module, "__call__"), (nn.Linear, "forward"), (torch.optim.SGD, "step"), (torch.optim.Optimizer, "zero_grad"),
):  # fmt: skip
    setattr(holder, name, counted(f"{holder.__name__}.{name}", getattr(holder, name)))
torch.Tensor.cumsum = Proxy("cumsum", torch.Tensor.cumsum)
torch.Tensor.norm = Proxy("norm", torch.Tensor.norm)
nn.functional.softplus = functools.partial(log_partial, "softplus", nn.functional.softplus)
warnings.showwarning = counted("showwarning", warnings.showwarning)
threading.excepthook = counted("threading.excepthook", threading.excepthook)

model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2))
model[0].forward = counted("instance", model[0].forward)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    hidden = (model(torch.randn(3, 4)) + 1).add(1).relu() * 2
    hidden += 1
    hidden = nn.functional.softplus(nn.functional.dropout(nn.functional.max_pool1d(hidden[None], 1), 0.1))
    loss = 1 - nn.functional.mse_loss(hidden, torch.zeros(1, 3, 2)) + hidden.cumsum(0).norm() * 0.01
    with mock.patch.object(torch.Tensor, "exp", counted("exp", torch.Tensor.exp)):
        loss = loss.exp()
    loss.backward()
    optimizer.step()
    warnings.warn(f"step {step}, loss {loss.item():.6f}", stacklevel=1)
events.append("grad")
torch.autograd.grad(model(torch.randn(3, 4)).sum(), list(model.parameters()))
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
print(*events)
for name in sorted(set(events)):
    print(name, events.count(name))
fingerprint.show(model)
