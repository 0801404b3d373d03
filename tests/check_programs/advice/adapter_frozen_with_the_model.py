# expect: GI379
# why: freezes net.0.back and net.2.back, of which each is zero everywhere
# advice: If they should learn, as an adapter does, freeze the model before they are made, or set their requires_grad
# advice: to True after adapter_frozen_with_the_model.py:35.
# lines: frozen=35
import torch
from torch import nn


class Adapted(nn.Module):
    """A linear layer beside one of low rank, which adds nothing at first."""

    def __init__(self, layer: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.layer = layer
        self.forth = nn.Parameter(torch.randn(layer.in_features, rank) * 0.3)
        self.back = nn.Parameter(torch.zeros(rank, layer.out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + x @ self.forth @ self.back


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 2))
x = torch.randn(64, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
# A new task: adapters and a new head, and nothing else.
# What was trained before stays as it is.
net.requires_grad_(False)  # +
for place in (0, 2):
    net[place] = Adapted(net[place])
# Only then comes the head.
# It has two classes.
for parameter in net.parameters():  # -
    parameter.requires_grad = False  # -
net[4] = nn.Linear(12, 2)
optimizer = torch.optim.Adam([one for one in net.parameters() if one.requires_grad], lr=0.02)
history = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
