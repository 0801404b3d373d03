# expect: GI359
# advice: and use the same tensor at noise_drawn_by_a_function.py:19 and
# advice: : pass it on at noise_drawn_by_a_function.py:26
import torch
from torch import nn

torch.manual_seed(0)
keep = torch.linspace(0.99, 0.02, 50)
model = nn.Sequential(nn.Linear(5, 64), nn.SiLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = torch.randn(1, 4).repeat(128, 1)
losses = []


def noised(clean: torch.Tensor, step: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
    """Add noise as the schedule says."""
    level = keep[step][:, None]
    noise = torch.randn_like(clean) if noise is None else noise
    return level.sqrt() * clean + (1 - level).sqrt() * noise


def error(clean: torch.Tensor) -> torch.Tensor:
    """Predict the noise of a random step."""
    step = torch.randint(50, (len(clean),))
    noise = torch.randn_like(clean)
    given = noised(clean, step)  # -
    given = noised(clean, step, noise)  # +
    return nn.functional.mse_loss(model(torch.cat((given, step[:, None] / 50), 1)), noise)


for _ in range(60):
    loss = error(data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
