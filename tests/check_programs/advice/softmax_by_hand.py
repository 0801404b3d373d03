# expect: GI502
# advice: At softmax_by_hand.py:15, keep its input small: subtract the maximum first, as logsumexp and softmax do, or
# advice: clamp it.
# lines: backward=20 made=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-4)
x, y = 200 * torch.randn(16, 4), torch.randint(3, (16,))
losses = []
for _ in range(30):
    scores = layer(x)
    e = torch.exp(scores)  # -
    e = torch.exp(scores - scores.amax(1, keepdim=True))  # +
    p = e / e.sum(1, keepdim=True)
    loss = (p - nn.functional.one_hot(y, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
