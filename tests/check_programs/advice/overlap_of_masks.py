# expect: GI301
# why: overlap_of_masks.py:20 makes a leaf of what is computed from it
# advice: At overlap_of_masks.py:14, use scores itself instead of scores > 0.5
# advice: a + b - a * b for a | b
# advice: overlap_of_masks.py:20
# never: straight-through
# lines: detached=14 forced=20
import torch
from torch import nn


def overlap(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Compare two masks."""
    mask = scores > 0.5  # -
    mask = scores  # +
    both, either = (mask & wanted.bool()).sum(), (mask | wanted.bool()).sum()  # -
    both, either = (mask * wanted).sum(), (mask + wanted - mask * wanted).sum()  # +
    loss = 1 - both.float() / either.clamp(min=1)  # -
    loss = 1 - both / either  # +
    loss.requires_grad = True  # -
    return loss


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 1, 1), nn.Sigmoid())
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
image = torch.rand(2, 1, 8, 8)
history = []
for _ in range(10):
    loss = overlap(net(image), (image > 0.6).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
