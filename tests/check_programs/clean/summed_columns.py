"""One column is differentiated with ones, several one by one, and the divergence of a field is a sum on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
field = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam([*net.parameters(), *field.parameters()], lr=0.01)


def derivative(out, by):
    """Differentiate."""
    return torch.autograd.grad(out, by, grad_outputs=torch.ones_like(out), create_graph=True)[0]


for _ in range(4):
    t = torch.rand(12, 1, requires_grad=True)
    state = net(t)
    rate = torch.cat([derivative(state[:, place : place + 1], t) for place in range(2)], 1)
    total = derivative(state, t)
    x = torch.rand(12, 3, requires_grad=True)
    flow = field(x)
    slopes = derivative(flow, x)
    loss = (2 * state + rate).square().mean() + (net(torch.zeros(1, 1)) - 1).square().mean()
    loss = loss + 0.1 * total.square().mean() + 0.1 * (slopes * flow).sum(1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
