# expect: GI377
# why: best of best_state_kept.py:23 is in the memory of the parameters
# advice: Copy it at best_state_kept.py:23: best = copy.deepcopy(model.state_dict()), with import copy.
# lines: shared=23
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history, least, best = torch.randn(16, 4), [], float("inf"), model.state_dict()
for _ in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    if history[-1] < least:
        least = history[-1]

        best = model.state_dict()  # -
        best = copy.deepcopy(model.state_dict())  # +
model.load_state_dict(best)
print("loss", history[0], history[-1])
