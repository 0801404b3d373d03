# expect: GI502
# advice: At missing_as_infinity.py:18, use torch.where() or masked_fill() in place of a product with 0.
# lines: backward=22 first=18
import numpy
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
table = numpy.random.default_rng(0).normal(size=(32, 3)).astype("float32")
table[4, 1] = numpy.inf
x = torch.from_numpy(table)
is_given = x.isfinite()
y = torch.randn(32, 1)
losses = []
for _ in range(30):
    known = x * is_given  # -
    known = torch.where(is_given, x, 0.0)  # +
    loss = (layer(known) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
