"""One function trains a network, and then adapters of it of which both layers are zero."""

# expect: GI602 zeros=15 used=19 backward=36
import torch
from torch import nn


class Adapter(nn.Module):
    """Adds a correction to what it is given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, 4, bias=False), nn.Linear(4, width, bias=False)
        for layer in (self.down, self.up):
            nn.init.zeros_(layer.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return x + self.up(self.down(x))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.adapter, self.head = nn.Linear(6, 8), nn.Identity(), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.adapter(self.first(x).tanh()))


def fit(network: nn.Module) -> None:
    optimizer = torch.optim.Adam([one for one in network.parameters() if one.requires_grad], lr=0.01)
    for _ in range(3):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        (network(x).squeeze(1) - x[:, 0]).square().mean().backward()
        optimizer.step()


torch.manual_seed(0)
network = Network()
fit(network)
network.requires_grad_(False)
network.adapter, network.head = Adapter(8), nn.Linear(8, 1)
fit(network)
