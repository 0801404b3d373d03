"""Frozen zeros that are meant: biases, and a gate whose matrix learns from the second phase on."""

import torch
from torch import nn


class Gated(nn.Module):
    """A layer, and one that adds nothing until it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.gate = nn.Linear(4, 4), nn.Parameter(torch.zeros(4, 4))
        nn.init.zeros_(self.layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + x @ self.gate


torch.manual_seed(0)
body, head = Gated(), nn.Linear(4, 1)
for parameter in body.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
x = torch.randn(32, 4)
for step in range(20):
    if step == 10:
        for parameter in body.parameters():
            parameter.requires_grad = True
    loss = (head(body(x)) - x.prod(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
