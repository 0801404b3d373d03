# expect: GI401
# lines: kept=23
# advice: Compute prototypes_before_the_loop.py:23 again in each iteration
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(encoder.parameters(), lr=0.02)


def means(support: torch.Tensor) -> torch.Tensor:
    """Return a mean of each class."""
    return encoder(support).view(5, 3, -1).mean(1)


def episode(prototypes: torch.Tensor, query: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Classify by distance."""
    return nn.functional.cross_entropy(-torch.cdist(encoder(query), prototypes), label)


def train(support: torch.Tensor, query: torch.Tensor, label: torch.Tensor) -> list[float]:
    prototypes = means(support)
    history = []
    for _ in range(8):
        prototypes = means(support)  # +
        loss = episode(prototypes, query, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


found = train(torch.randn(15, 6), torch.randn(10, 6), torch.randint(0, 5, (10,)))
print("loss", found[0], found[-1])
