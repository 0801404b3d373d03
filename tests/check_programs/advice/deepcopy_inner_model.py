# expect: GI301
# advice: torch.func.functional_call
# never: the tensor itself
import copy  # -

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
scale = nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.05)
x, y = torch.randn(8, 3), torch.randn(8, 1)
losses = []
for _ in range(30):
    fast = copy.deepcopy(model)  # -
    loss = (fast(x) * scale - y).square().mean()  # -
    fast = {name: 0.9 * weight for name, weight in model.named_parameters()}  # +
    loss = (torch.func.functional_call(model, fast, (x,)) * scale - y).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
