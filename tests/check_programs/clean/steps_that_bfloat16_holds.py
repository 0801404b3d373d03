"""A small network in bfloat16, with a learning rate that bfloat16 can add."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).to(torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
x = torch.randn(128, 16)
y = x[:, :4].argmax(1)
for _ in range(40):
    i = torch.randint(0, 128, (32,))
    loss = nn.functional.cross_entropy(model(x[i].bfloat16()).float(), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
