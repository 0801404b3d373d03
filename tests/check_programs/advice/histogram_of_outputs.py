# expect: GI302
# advice: At histogram_of_outputs.py:15, use a differentiable function instead of histc.
# lines: backward=19 detached=15 read=14
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, losses = torch.randn(256, 8), []
centers = torch.linspace(-1.8, 1.8, 10)
wanted = torch.full((10,), 0.1)
for _ in range(20):
    h = model(x)
    share = torch.histc(h, 10, -2, 2) / len(x)  # -
    share = torch.softmax(-20 * (h - centers).square(), 1).mean(0)  # +
    loss = (share - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
