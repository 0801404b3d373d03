# expect: GI001
# advice: The state is that of an optimizer with other parameters: freeze and add the same ones before both are made,
"""The second phase trains all, and is given the state of the first, which trained the head."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.randn(64, 6)
y = x[:, :1] * x[:, 1:2]
history = []


def train(optimizer):
    for _ in range(20):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())


first = torch.optim.Adam(net[2].parameters(), lr=0.02)
net[0].requires_grad_(False)
train(first)
net[0].requires_grad_(True)
second = torch.optim.Adam([{"params": net[2].parameters()}, {"params": net[0].parameters()}], lr=0.02)
second.load_state_dict(first.state_dict())  # -
train(second)
print("loss", history[0], history[-1])
