"""Blocks that are to be frozen by an attribute of the modules; tensors are frozen as they should be."""

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3)])
        self.scale = nn.Linear(6, 6)
        self.out = nn.Linear(6, 2)
        self.scale.bias.requires_grad = False
        for tensor in self.scale.parameters():
            tensor.requires_grad = False
        for block in self.blocks[:2]:
            block.requires_grad = False

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.out(self.scale(x))


torch.manual_seed(0)
model = Stack()
optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.05)
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(9, 6)), torch.zeros(9, 2))
    loss.backward()
    optimizer.step()
# expect: GI374 set=17 backward=31
