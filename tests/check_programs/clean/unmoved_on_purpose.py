"""A multiplier that stays at its bound, a warm-up that begins with 0, steps after several calls, LoRA's zeros."""

import torch
from torch import nn

torch.manual_seed(0)
model, multiplier = nn.Linear(6, 3), nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dual = torch.optim.SGD([multiplier], lr=0.1, maximize=True)
x, y = torch.randn(48, 6), torch.randint(3, (48,))
for _ in range(8):
    scores = model(x)
    excess = scores.square().mean() - 100.0
    loss = nn.functional.cross_entropy(scores, y) + multiplier * excess
    optimizer.zero_grad()
    dual.zero_grad()
    loss.backward()
    optimizer.step()
    dual.step()
    with torch.no_grad():
        multiplier.clamp_(min=0.0)  # the constraint is met

warming = nn.Linear(6, 3)
optimizer = torch.optim.AdamW(warming.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step, 4) / 4)
for step in range(12):
    loss = nn.functional.cross_entropy(warming(x), y) / 4
    loss.backward()
    if step % 4 == 3:
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

base, down, up = nn.Linear(6, 3).requires_grad_(False), nn.Linear(6, 2, bias=False), nn.Linear(2, 3, bias=False)
nn.init.zeros_(up.weight)
optimizer = torch.optim.Adam([*down.parameters(), *up.parameters()], lr=0.01)
for _ in range(6):
    loss = nn.functional.cross_entropy(base(x) + up(down(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
