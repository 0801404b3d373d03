# expect: GI502
# advice: At log_of_sigmoid.py:15, use torch.nn.functional.logsigmoid() of the input instead of the logarithm of
# advice: sigmoid().
# lines: backward=18 made=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-4)
x = 400 * torch.randn(16, 3)
losses = []
for _ in range(30):
    score = layer(x)
    loss = -torch.sigmoid(score).log().mean()  # -
    loss = -nn.functional.logsigmoid(score).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
