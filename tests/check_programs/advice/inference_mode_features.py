# expect: GI301
# lines: detached=13
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(3, 8), nn.Tanh()), nn.Linear(8, 1)


def features(x):
    scaled = x * 2
    return body(scaled)  # +
    with torch.inference_mode():  # -
        h = body(scaled)  # -
    return h.clone()  # -


optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.02)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (head(features(x)) - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
