# expect: GI502
# advice: -inf
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y, lengths = torch.randn(4, 3), torch.rand(4, 4), torch.tensor([4, 2, 0, 3])
mask = torch.arange(4) >= lengths[:, None]
losses = []
for _ in range(30):
    scores = layer(x).masked_fill(mask, float("-inf"))  # -
    scores = layer(x).masked_fill(mask, torch.finfo(torch.float32).min)  # +
    weights = torch.softmax(scores, 1)
    loss = (weights - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
