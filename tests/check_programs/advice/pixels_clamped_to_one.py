# expect: GI601
# advice: At pixels_clamped_to_one.py:14, scale its input into the bounds, or clamp where no gradient is needed.
# lines: backward=18 zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(32, 4), torch.rand(32, 6)
model[2].bias.data += 8
losses = []
for _ in range(30):
    image = model(x).clamp(0, 1)  # -
    image = model(x)  # +
    loss = (image - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
