# expect: GI301
# advice: At buckets_of_features.py:14, use a differentiable function instead of bucketize.
# lines: backward=18 detached=14 read=13 step=19
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(8, 1), nn.Embedding(5, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, edges, losses = torch.randn(32, 8), torch.linspace(-1, 1, 4), []
centers = torch.linspace(-1.3, 1.3, 5)
for _ in range(20):
    h = encoder(x)
    guess = head(torch.bucketize(h, edges))[:, 0]  # -
    guess = torch.softmax(-9 * (h - centers).square(), 1) @ head.weight  # +
    loss = (guess - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
