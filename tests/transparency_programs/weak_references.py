import gc
import weakref

import fingerprint
import torch
from torch import nn

torch.manual_seed(29)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
died = []
before = None
for step in range(5):
    x = torch.randn(3, 4)
    hidden = model[1](model[0](x))
    loss = model[2](hidden).mean()
    weakref.finalize(x, died.append, f"x{step}")
    weakref.finalize(hidden, died.append, f"hidden{step}")
    weakref.finalize(loss, died.append, f"loss{step}")
    loss.backward()
    del x, hidden, loss
    if step >= 2:
        gc.collect()
        count = fingerprint.alive()
        print(step, "the same" if before in (None, count) else (before, count))
        before = count
gc.collect()
print(sorted(died))
print(fingerprint.alive())
fingerprint.show(model)
