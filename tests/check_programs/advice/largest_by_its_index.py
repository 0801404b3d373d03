# expect: GI301
# advice: At largest_by_its_index.py:14, use the values beside the indices, or weights by softmax(), instead of topk.
# lines: backward=19 detached=14 read=13 step=20 used=15
import torch
from torch import nn

torch.manual_seed(0)
scorer, head = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*scorer.parameters(), *head.parameters()], lr=0.2)
x, losses = torch.randn(64, 6, 4), []
y = x.gather(1, x[:, :, :1].argmax(1, keepdim=True).expand(64, 1, 4))[:, 0, 1:2]
for _ in range(60):
    scores = scorer(x)[:, :, 0]
    best = scores.topk(1, dim=1).indices  # -
    chosen = x[torch.arange(64), best[:, 0]]  # -
    chosen = (torch.softmax(scores, 1).unsqueeze(2) * x).sum(1)  # +
    loss = (head(chosen) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
