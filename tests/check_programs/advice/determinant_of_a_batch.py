# expect: GI708
# why: it is added to each of 16 values, in each of
# advice: At determinant_of_a_batch.py:15, sum over the features of each example: sum(1).
# lines: added=15
import torch
from torch import nn

torch.manual_seed(0)
scale, history = nn.Linear(2, 2), []
optimizer = torch.optim.Adam(scale.parameters(), lr=0.02)
x = torch.randn(16, 2) * 2
for _ in range(8):
    s = torch.tanh(scale(x))
    z = x * s.exp()
    log_p = -z.square().sum(1) / 2 + s.sum()  # -
    log_p = -z.square().sum(1) / 2 + s.sum(1)  # +
    loss = -log_p.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
