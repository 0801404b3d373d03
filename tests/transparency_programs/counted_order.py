"""What libraries replace most is counted, on a program that runs on fake tensors as it does with values."""

import builtins
import sys

import call_counters
import torch
from torch import nn

for holder, name in (
    (torch.Tensor, "backward"), (torch.autograd, "backward"), (torch.autograd, "grad"),
    (torch.Tensor, "register_hook"), (nn.Module, "__call__"), (nn.Module, "_call_impl"), (nn.Linear, "forward"),
    (nn.functional, "mse_loss"), (torch.optim.SGD, "step"), (torch.optim.Optimizer, "zero_grad"), (builtins, "print"),
    (sys, "excepthook"),
):  # fmt: skip
    setattr(holder, name, call_counters.counted(f"{holder.__name__}.{name}", getattr(holder, name)))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(16, 4)), torch.zeros(16, 1))
    scale = torch.ones(3, requires_grad=True)
    torch.autograd.grad((scale * 2).sum(), scale)
    loss.register_hook(lambda gradient: gradient * 2)
    loss.backward()
    optimizer.step()
    print("step", step)
print(call_counters.report(), end="")
raise ValueError("the end")
