# expect: GI375
# advice: F.linear(x, squeeze.weight.t()) in place of expand.weight
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
squeeze, expand = nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)
expand.weight.data = squeeze.weight.data.t()  # -
kept = [*squeeze.parameters(), *expand.parameters()]  # -
kept = squeeze.parameters()  # +
optimizer, losses = torch.optim.SGD(kept, lr=0.1), []
x = torch.randn(32, 6)
for _ in range(40):
    optimizer.zero_grad()
    hidden = squeeze(x)
    loss = (expand(hidden) - x).square().mean()  # -
    loss = (F.linear(hidden, squeeze.weight.t()) - x).square().mean()  # +
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
