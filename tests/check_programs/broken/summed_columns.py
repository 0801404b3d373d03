"""A network of two columns is differentiated by time with ones: the sum of both derivatives stands beside each."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def derivative(out, by):
    """Differentiate."""
    return torch.autograd.grad(out, by, grad_outputs=torch.ones_like(out), create_graph=True)[0]


for _ in range(4):
    t = torch.rand(12, 1, requires_grad=True)
    state = net(t)
    rate = derivative(state, t)
    loss = (2 * state + rate).square().mean() + (net(torch.zeros(1, 1)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI705 gradient=13 used=20
