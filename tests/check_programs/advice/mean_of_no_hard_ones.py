# expect: GI502
# advice: At mean_of_no_hard_ones.py:15, divide the sum by the number, clamped to at least 1.
# lines: backward=18 made=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(32, 4)
losses = []
for _ in range(30):
    error = (layer(x) - x[:, :1]).square()
    hard = error[error > 100]
    loss = error.mean() + hard.mean()  # -
    loss = error.mean() + hard.sum() / max(len(hard), 1)  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
