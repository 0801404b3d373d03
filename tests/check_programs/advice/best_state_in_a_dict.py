# expect: GI377
# why: best_state_in_a_dict.py:22 got best['weights'] from model.state_dict()
# advice: At best_state_in_a_dict.py:22, keep copy.deepcopy(model.state_dict()), with import copy.
# lines: shared=22
import copy
from typing import Any

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history = torch.randn(16, 4), []
best: dict[str, Any] = {"loss": float("inf")}
for _ in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < best["loss"]:
        best = {"loss": loss.item(), "weights": model.state_dict()}  # -
        best = {"loss": loss.item(), "weights": copy.deepcopy(model.state_dict())}  # +
    history.append(loss.item())
model.load_state_dict(best["weights"])
print("loss", history[0], history[-1])
