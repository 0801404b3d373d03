# expect: GI001
# advice: Which device is meant? Make the others there, or move them with to(device).
# lines: failed=15
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
scale = torch.ones(8, device="meta")  # -
scale = torch.ones(8)  # +
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    h = body(x)
    loss = (head(h * scale) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
