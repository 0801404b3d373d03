# expect: GI377
# why: 3 or more results of model.state_dict() are kept
# advice: At snapshots_without_a_copy.py:19, keep copy.deepcopy(model.state_dict()), with import copy.
# lines: shared=19
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, history, snapshots = torch.randn(16, 4), [], []
for _ in range(6):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    snapshots.append(model.state_dict())  # -
    snapshots.append(copy.deepcopy(model.state_dict()))  # +
    history.append(loss.item())
model.load_state_dict({name: torch.stack([one[name] for one in snapshots[-3:]]).mean(0) for name in snapshots[0]})
print("loss", history[0], history[-1])
