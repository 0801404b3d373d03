# expect: GI001
# why: model.last is float32 [4, 1], made at copies_a_result.py:20.
# advice: Before copies_a_result.py:33, write model.last = model.last.detach(): what has a graph is not copied.
# lines: failed=33
import copy

import torch
from torch import nn


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.last = None

    def forward(self, x):
        # The caller looks at it after each step.
        y = self.layer(x)
        self.last = y * 2
        return y


torch.manual_seed(0)
model, history = Kept(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 3)
for _ in range(5):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    history.append(loss.item())
    model.last = model.last.detach()  # +

    best = copy.deepcopy(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
