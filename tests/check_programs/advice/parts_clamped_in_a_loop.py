# expect: GI101
# advice: Collect the results in a new list, and use it in place of parts after the loop: 'part = part.clamp(max=2.0)'
# advice: at parts_clamped_in_a_loop.py:16 changes the variable of the loop alone.
# lines: backward=20 saved=14 written=16
import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList(nn.Linear(3, 4) for _ in range(3))
optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    parts = [layer(x).exp() for layer in layers]
    for part in parts:  # -
        part.clamp_(max=2.0)  # -
    parts = [part.clamp(max=2.0) for part in parts]  # +
    loss = (torch.stack(parts) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
