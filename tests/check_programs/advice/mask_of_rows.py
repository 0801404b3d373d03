# expect: GI101
# advice: add 'h = h.clone()' before mask_of_rows.py:
# never: masked_fill
import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Linear(3, 4)
optimizer = torch.optim.SGD(embed.parameters(), lr=0.05)
x, y = torch.randn(8, 5, 3), torch.rand(8, 5, 4)
padding = torch.arange(5).repeat(8, 1) > 3
losses = []
for _ in range(30):
    h = torch.sigmoid(embed(x))
    h[padding] = 0.0  # -
    h = h.clone()  # +
    h[padding] = 0.0  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
