# expect: GI001
# why: inconsistent with step sign
# advice: What does this line pass, and what does torch say that it expects?
# lines: failed=13
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(8, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x, y, losses = torch.randn(32, 8), torch.randn(32, 4), []
for _ in range(10):
    weights = 0.9 ** torch.arange(4, 0)  # -
    weights = 0.9 ** torch.arange(4, 0, -1)  # +
    loss = (weights * (layer(x) - y).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
