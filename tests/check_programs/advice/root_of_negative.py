# expect: GI502
# options: --steps 1
# advice: clamp(min=1e-8)
# never: sqrt(x + 1e-8)
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-5)
x = torch.randn(16, 3) + 100
losses = []
for _ in range(30):
    h = layer(x)
    variance = (h * h).mean(0) - h.mean(0) ** 2 - 1e-1
    spread = torch.sqrt(variance - 50)  # -
    spread = torch.sqrt((variance - 50).clamp(min=1e-8))  # +
    loss = (h - 1).abs().mean() + spread.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
