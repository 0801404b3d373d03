"""A model that asks for its own activations in each forward pass, by a hook that a method makes."""

import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {}
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))
        self.out = nn.Linear(8, 1)

    def keep(self, name):
        def hook(_module, _inputs, output):
            self.seen[name] = output.detach()

        return hook

    def forward(self, x):
        for name, layer in self.body.named_children():
            layer.register_forward_hook(self.keep(name))
        return self.out(self.body(x))


torch.manual_seed(0)
model = Probe()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(10, 4)).square().mean()
    loss.backward()
    optimizer.step()
# expect: GI802 hooked=22 backward=32
