import fingerprint
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(33)
model = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
outer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    outer.zero_grad()
    for _ in range(2):
        phase = torch.rand(1) * 3
        x = torch.rand(6, 1)
        y = torch.sin(x + phase)
        fast = dict(model.named_parameters())
        for _ in range(2):
            inner = (functional_call(model, fast, (x,)) - y).square().mean()
            slopes = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: value - 0.1 * slope for (name, value), slope in zip(fast.items(), slopes)}
        (functional_call(model, fast, (x,)) - y).square().mean().backward()
    outer.step()
    print(step, f"{inner.item():.9f}")
fingerprint.show(model)
