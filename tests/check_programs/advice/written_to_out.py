# expect: GI101
# advice: Remove out= at written_to_out.py:16 and assign the result, which is a new tensor.
# lines: backward=20 saved=18 written=16
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
scale = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([*layer.parameters(), scale], lr=0.05)
x, y, buffer = torch.randn(2, 8, 3), torch.rand(8, 4), torch.zeros(8, 3)
losses = []
for _ in range(30):
    total = torch.zeros(())
    for part in x:
        torch.mul(part, 2.0, out=buffer)  # -
        buffer = torch.mul(part, 2.0)  # +
        total = total + (layer(buffer) * scale - y).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    losses.append(total.item())
print("loss", losses[0], losses[-1])
