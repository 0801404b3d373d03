# expect: GI359
# why: Nothing else reads that noise: what noise_drawn_twice.py:20 adds to the input is another draw.
# advice: Draw the noise once, and use the same tensor at noise_drawn_twice.py:20 and noise_drawn_twice.py:26
# lines: mixed=20 drawn=25 used=26 backward=28
import torch
from torch import nn

torch.manual_seed(0)
keep = torch.linspace(0.99, 0.02, 50)
model = nn.Sequential(nn.Linear(5, 64), nn.SiLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = torch.randn(1, 4).repeat(128, 1)
losses = []


def noised(clean: torch.Tensor, step: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Add noise as the schedule says."""
    level = keep[step][:, None]
    noise = torch.randn_like(clean)  # -
    return level.sqrt() * clean + (1 - level).sqrt() * noise


for _ in range(60):
    step = torch.randint(50, (128,))
    noise = torch.randn_like(data)
    loss = nn.functional.mse_loss(model(torch.cat((noised(data, step, noise), step[:, None] / 50), 1)), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
