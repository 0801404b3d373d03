"""One helper trains both networks of a GAN, a closure is called often, and a step is left out when it is not finite."""

# options: --steps 20

import torch
from torch import nn

torch.manual_seed(0)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


maker = nn.Linear(3, 2)
judge = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
for _ in range(3):
    update(of_maker, -judge(maker(torch.randn(8, 3))).mean())
    update(of_judge, (judge(maker(torch.randn(8, 3)).detach()) - judge(torch.randn(8, 2))).mean())

line = nn.Linear(3, 1)
newton = torch.optim.LBFGS(line.parameters(), max_iter=4)
x, y = torch.randn(16, 3), torch.randn(16, 1)


def closure():
    newton.zero_grad()
    loss = (line(x) - y).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    newton.step(closure)

plain = nn.Linear(3, 1)
optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
for number in range(6):
    optimizer.zero_grad()
    (plain(x) - y).square().mean().backward()
    if number == 2:
        continue
    optimizer.step()
