# expect: GI701
# advice: Give both the same shape before columns_against_a_row.py:13: call reshape(32, 1) on the [1, 32].
# lines: backward=16 broadcast=13 reduced=13
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
y = x[:, 0].reshape(1, 32)
for _ in range(20):
    loss = (model(x) - y).square().mean()  # -
    loss = (model(x) - y.reshape(32, 1)).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
