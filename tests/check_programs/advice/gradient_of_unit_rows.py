# expect: GI501
# advice: What does unit divide by, or multiply with?
# lines: backward=26 hooked=21
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
x, padded = torch.randn(32, 4), torch.arange(32) % 4 == 0
y = x.sum(dim=1, keepdim=True)
losses = []


def unit(gradient):
    return gradient / gradient.norm(dim=1, keepdim=True)  # -
    return gradient / gradient.norm(dim=1, keepdim=True).clamp(min=1e-8)  # +


for _ in range(30):
    hidden = model[:2](x)
    hidden.register_hook(unit)
    errors = (model[2](hidden) - y).square().squeeze(1)
    loss = errors[~padded].mean()  # so rows that are padded have a gradient of zeros
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
