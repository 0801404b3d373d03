# expect: GI502
# advice: Does x come from data in which values are missing, or from an earlier update of the weights?
# lines: backward=19 first=17
import numpy
import torch
from torch import nn

torch.manual_seed(0)
table = numpy.random.default_rng(0).normal(size=(32, 4)).astype("float32")
table[5, 2] = numpy.nan
x, y = torch.from_numpy(table[:, :3]), torch.from_numpy(table[:, 3:])
x = x.nan_to_num(0.0)  # +
layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
losses = []
for _ in range(30):
    loss = (layer(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
