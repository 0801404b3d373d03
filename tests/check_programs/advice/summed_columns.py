# expect: GI705
# why: the one column that it returns is the sum of the gradients of 2 columns
# advice: take the gradient of each column alone, and join them
# lines: gradient=18 used=25
import torch
from torch import nn

torch.manual_seed(0)
net, history = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2)), []
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
decay = torch.tensor([1.0, 4.0])


def rate(u, t):
    """Differentiate by time."""
    ones = torch.ones_like(u)

    return torch.autograd.grad(u, t, ones, create_graph=True)[0]  # -
    return torch.cat([torch.autograd.grad(c.sum(), t, create_graph=True)[0] for c in u.unbind(1)], 1)  # +


for _ in range(6):
    t = torch.rand(12, 1, requires_grad=True)
    state = net(t)
    loss = (rate(state, t) + decay * state).square().mean() + (net(torch.zeros(1, 1)) - 1).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
