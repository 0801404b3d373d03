# expect: GI001
# advice: The optimizer was loaded with the state of other parameters, or in another order: make the layers in the
# advice: order that they had when it was saved, or let it start without that state.
"""The head was made last when the state was saved, and is made first now."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, is_head_first):
        super().__init__()
        if is_head_first:
            self.head = nn.Linear(24, 2)
        self.body = nn.Linear(10, 24)
        if not is_head_first:
            self.head = nn.Linear(24, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def train(model, optimizer):
    losses = []
    for _ in range(8):
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(0)
x = torch.randn(32, 10)
model = Model(is_head_first=False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
first = train(model, optimizer)
saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
model = Model(is_head_first=True)  # -
model = Model(is_head_first=False)  # +
model.load_state_dict(saved["model"])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer.load_state_dict(saved["optimizer"])
last = train(model, optimizer)
print("loss", first[0], last[-1])
