# expect: GI501
# advice: -inf
import torch
from torch import nn

torch.manual_seed(0)
keys, values, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
parameters = [*keys.parameters(), *values.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05)
x, y, lengths = torch.randn(6, 5, 4), torch.rand(6, 1), torch.tensor([5, 2, 0, 3, 1, 4])
empty = torch.arange(5) >= lengths[:, None]
losses = []
for _ in range(30):
    scores = x @ keys(x).transpose(1, 2)
    scores = scores.masked_fill(empty[:, None], float("-inf"))  # -
    scores = scores.masked_fill(empty[:, None], torch.finfo(torch.float32).min)  # +
    mixed = scores.softmax(2) @ values(x)
    pooled = mixed.masked_fill(empty[..., None], 0.0).sum(1)
    loss = (head(pooled) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
