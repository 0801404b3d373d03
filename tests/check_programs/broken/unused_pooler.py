"""The pooled output is computed in forward, and the loss takes the other one."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.pooler = nn.Linear(4, 4)

    def forward(self, x):
        hidden = torch.tanh(self.layer(x))
        pooled = torch.tanh(self.pooler(hidden[:, 0]))
        return hidden, pooled


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    hidden, pooled = model(torch.randn(2, 3, 4))
    loss = hidden.mean(1).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI303 read=15 last=15 backward=26 step=27
