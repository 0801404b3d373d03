"""Models without an optimizer: a backbone in eval mode, a loaded one, one updated by hand, one that is attacked."""

# options: --steps 30
import copy

import torch
from torch import nn

torch.manual_seed(0)


def body():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def train(model, head, optimizer):
    for _ in range(3):
        x, y = torch.randn(8, 6), torch.randint(2, (8,))
        loss = nn.functional.cross_entropy(head(model(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


probed, probe = body().eval(), nn.Linear(4, 2)
train(probed, probe, torch.optim.SGD(probe.parameters(), lr=0.1))

loaded, head = body(), nn.Linear(4, 2)
loaded.load_state_dict(body().state_dict())
train(loaded, head, torch.optim.SGD(head.parameters(), lr=0.1))

online, target = body(), body()
optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(8, 6)
    loss = (online(x) - target(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.1)
            slow.grad = None

victim = copy.deepcopy(online)
noise = torch.zeros(1, 6, requires_grad=True)
of_noise = torch.optim.Adam([noise], lr=0.1)
for _ in range(3):
    loss = -victim(torch.randn(8, 6) + noise).square().mean()
    of_noise.zero_grad()
    loss.backward()
    of_noise.step()
