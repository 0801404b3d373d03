# expect: GI501
# why: reads what was infinite or NaN in the forward pass already, made by log, though the loss is finite.
# advice: At squared_logarithm_of_a_branch.py:15, clamp its input: x.clamp(min=1e-8).
# lines: made=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(64, 4), []
amount = x.sum(1).clamp(min=0) + 0.1 * (x[:, 0] > 0)
for _ in range(20):
    found = model(x).squeeze(-1)
    error = (torch.log(found) - torch.log(amount.clamp(min=1e-3))) ** 2  # -
    error = (torch.log(found.clamp(min=1e-8)) - torch.log(amount.clamp(min=1e-3))) ** 2  # +
    loss = torch.where((found > 0) & (amount > 0), error, found.abs()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
