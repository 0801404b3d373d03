import fingerprint
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


torch.manual_seed(10)
model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 1))
for _ in range(3):
    with Log() as log:
        loss = model(torch.randn(2, 4)).mean()
        loss.backward()
    print(len(log.names), *log.names)
with Log() as log:
    w = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(w.pow(3).sum(), w, create_graph=True)
    g.sum().backward()
print(len(log.names), *log.names)
fingerprint.show(model, w)
