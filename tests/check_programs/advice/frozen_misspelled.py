# expect: GI374
# why: sets .require_gradient of the parameters, but torch reads .requires_grad
# advice: Write value.requires_grad = False
# lines: set=12 backward=19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
for name, value in model.named_parameters():
    if name.startswith("0"):
        value.require_gradient = False  # -
        value.requires_grad = False  # +
optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
x = torch.randn(32, 3)
for _ in range(30):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
