# expect: GI803
# advice: To freeze it, call requires_grad_(False) on it and give it to no optimizer. Otherwise return the gradient
# advice: from the hook, or None to leave it as it is.
# lines: backward=18 hooked=10
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))
model[0].weight.register_hook(lambda gradient: gradient * 0)  # -
model[0].weight.requires_grad_(False)  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # -
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
