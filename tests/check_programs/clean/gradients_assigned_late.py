"""Gradients by autograd.grad() that some steps get by `.grad`, and others as an argument of the step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)


class Descent(torch.optim.Optimizer):
    """Takes the gradients from its caller."""

    def __init__(self, params) -> None:
        super().__init__(params, {})

    @torch.no_grad()
    def step(self, grads):
        for parameter, grad in zip(self.param_groups[0]["params"], grads, strict=True):
            parameter.sub_(0.01 * grad)


descent = Descent(net.parameters())
for iteration in range(12):
    x = torch.randn(16, 3)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    grads = torch.autograd.grad(loss, list(net.parameters()))
    if iteration % 2:
        descent.step(grads)
        continue
    if iteration:  # the first finds none
        for parameter, grad in zip(net.parameters(), grads, strict=True):
            parameter.grad = grad
    adam.step()
    adam.zero_grad()
