# expect: GI355
# advice: At targets_of_plus_and_minus.py:11, make 0 of -1: (target + 1) / 2.
# lines: labels=11 loss=15
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, losses = torch.randn(64, 4), []
y = x[:, :1].sign()
for _ in range(30):
    target = y  # -
    target = (y + 1) / 2  # +
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
