# expect: GI103
# advice: Look for code that writes to it outside torch, such as NumPy or another thread, and give it a copy.
# lines: backward=21 saved=19
import numpy
import torch
from torch import nn

torch.manual_seed(0)
random, window = numpy.random.default_rng(0), numpy.zeros((8, 3), numpy.float32)
layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
losses = []
for _ in range(30):
    total = 0.0
    for _ in range(2):
        window[:] = random.normal(size=window.shape)
        x = torch.from_numpy(window)  # -
        x = torch.from_numpy(window.copy())  # +
        total = total + (layer(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    losses.append(total.item())
print("loss", losses[0], losses[-1])
