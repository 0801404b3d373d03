# expect: GI706
# advice: At levels_along_rows.py:16, index what was looked up with [:, None].
import torch
from torch import nn

torch.manual_seed(0)
keep = torch.linspace(0.99, 0.01, 100)
model = nn.Sequential(nn.Linear(17, 64), nn.SiLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = torch.randn(1, 16).repeat(16, 1)
losses = []
for _ in range(60):
    step = torch.randint(100, (16,))
    noise = torch.randn_like(data)

    level = keep[step]  # -
    level = keep[step][:, None]  # +
    noisy = level.sqrt() * data + (1 - level).sqrt() * noise
    predicted = model(torch.cat((noisy, step[:, None] / 100), 1))
    loss = (predicted - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
