"""Low-rank adapters on a frozen layer; their second half begins at zero."""

import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        for parameter in base.parameters():
            parameter.requires_grad = False
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


torch.manual_seed(0)
model = nn.Sequential(Lora(nn.Linear(4, 8)), nn.GELU(), Lora(nn.Linear(8, 2)))
nn.init.normal_(model[0].up)
nn.init.normal_(model[2].up)
optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
for _ in range(3):
    loss = model(torch.randn(3, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
