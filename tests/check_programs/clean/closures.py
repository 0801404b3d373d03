"""LBFGS and SGD with closures, and the norm of the gradients measured by clipping to infinity after the step."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(3, 1), nn.Linear(3, 1)
x, y = torch.randn(12, 3), torch.randn(12, 1)
lbfgs = torch.optim.LBFGS(first.parameters(), lr=0.5, max_iter=3)
sgd = torch.optim.SGD(second.parameters(), lr=0.1)


def closure_of(model, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 5.0)
        return loss

    return closure


for _ in range(2):
    print(sgd.step(closure_of(second, sgd)).item().hex())
    print(nn.utils.clip_grad_norm_(second.parameters(), float("inf")).item().hex())
    print(lbfgs.step(closure_of(first, lbfgs)).item().hex())
# options: --steps 8
