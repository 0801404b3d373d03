# expect: GI701
# advice: Give both the same shape before one_score_for_all_columns.py:15: let what is learned have the shape [32, 3],
# advice: or select what belongs to the [32, 1].
# lines: backward=17 broadcast=15 reduced=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)  # -
model = nn.Linear(4, 3)  # +
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
y = x[:, :3].contiguous()
for _ in range(20):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
