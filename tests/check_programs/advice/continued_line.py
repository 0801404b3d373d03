# expect: GI101
# never: torch.cat([)
# never: cat([
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    half = layer(x)
    h = torch.cat([half, half], 1).exp()
    # fmt: off
    h += torch.cat(  # -
        [half, half], 1)  # -
    # fmt: on
    h = h + torch.cat([half, half], 1)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
