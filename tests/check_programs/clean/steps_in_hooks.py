"""Each parameter has its own optimizer, which steps in a hook while backward runs; sharpness-aware steps after that."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
by_parameter = {p: torch.optim.Adam([p], lr=1e-3) for p in model.parameters()}


def update(p):
    by_parameter[p].step()
    by_parameter[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(update)
sharp = nn.Linear(4, 1)
base = torch.optim.SGD(sharp.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(5, 4)).square().mean()
    loss.backward()
    x = torch.randn(5, 4)
    sharp(x).square().mean().backward()
    moves = []
    with torch.no_grad():
        for p in sharp.parameters():
            moves.append(0.05 * p.grad / (p.grad.norm() + 1e-12))
            p.add_(moves[-1])
    base.zero_grad()
    second = sharp(x).square().mean()
    second.backward()
    with torch.no_grad():
        for p, move in zip(sharp.parameters(), moves, strict=True):
            p.sub_(move)
    base.step()
    base.zero_grad()
    print(loss.item().hex(), second.item().hex())
# options: --steps 6
