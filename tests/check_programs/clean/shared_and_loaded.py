"""Layers that are shared on purpose, tied weights, a backbone loaded without its head, adapters alone."""

import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 6)
        self.cell = nn.Linear(6, 6)
        shared = nn.Linear(6, 6)
        self.steps = nn.ModuleList([shared] * 3)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(2)])
        self.acts = nn.Sequential(*[nn.ReLU()] * 2)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        h = self.embed(tokens)
        for _ in range(3):
            h = torch.tanh(self.cell(h))
        for step in self.steps:
            h = step(h)
        return self.head(self.acts(self.blocks(h)))


torch.manual_seed(0)
model = Shared()
state = {name: value for name, value in Shared().state_dict().items() if not name.startswith("head")}
model.load_state_dict(state, strict=False)
model.load_state_dict({"cell.weight": torch.eye(6), "extra": torch.ones(1)}, strict=False)
model.load_state_dict({}, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randint(12, (4, 5))).flatten(0, 1), torch.randint(12, (20,)))
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
