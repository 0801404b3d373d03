# expect: GI601
# why: A sample that torch.normal() draws has no derivative
# advice: At sampled_by_normal.py:16, write mean + std * torch.randn_like(std).
# lines: zeroed=16 backward=21
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 8), nn.Linear(4, 8)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.02)
x = torch.randn(32, 8)
history = []
for _ in range(10):
    mean, log_variance = encoder(x).chunk(2, dim=1)
    std = (0.5 * log_variance - 2).exp()
    z = torch.normal(mean, std)  # -
    z = mean + std * torch.randn_like(std)  # +
    loss = (decoder(z) - x).square().mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
