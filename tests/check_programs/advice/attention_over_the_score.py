# expect: GI601
# advice: At attention_over_the_score.py:14, normalize over the dimension that the weights are summed over, dimension
# advice: 1 (of length 6); for a gate between 0 and 1, use sigmoid.
# lines: backward=18 zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
score, head = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*score.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(64, 6, 4), []
y = x.gather(1, x[:, :, :1].argmax(1, keepdim=True).expand(64, 1, 4))[:, 0, 1:2]
for _ in range(60):
    weights = torch.softmax(score(x), dim=2)  # -
    weights = torch.softmax(score(x), dim=1)  # +
    loss = (head((weights * x).sum(1)) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
