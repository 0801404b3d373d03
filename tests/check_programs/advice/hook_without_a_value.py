# expect: GI803
# advice: Return the gradient from the hook, or None to leave it as it is. If no gradient is to pass there, use
# advice: detach() instead of the hook.
# lines: backward=25 hooked=22
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x, losses, norms = torch.randn(32, 8), [], []


def log(gradient):
    norms.append(gradient.norm().item())
    return torch.zeros_like(gradient)  # -
    return gradient  # +


for _ in range(20):
    h = body(x)
    h.register_hook(log)
    loss = (head(h) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
