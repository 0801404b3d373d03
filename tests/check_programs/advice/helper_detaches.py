# expect: GI301
# lines: detached=11 called=21
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(3, 8), nn.Linear(8, 1)


def normalized(h):
    h = h.detach()  # -
    return h / h.norm(dim=-1, keepdim=True)


optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    hidden = body(x)
    unit = normalized(hidden)
    loss = (head(unit) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
