# expect: GI301
# advice: torch.func.functional_call
# never: the tensor itself
# never: instead of writing
import torch
from torch import nn

torch.manual_seed(0)
hyper, target = nn.Linear(2, 4), nn.Linear(3, 1)
optimizer = torch.optim.SGD(hyper.parameters(), lr=0.05)
x, y, code = torch.randn(8, 3), torch.randn(8, 1), torch.ones(2)
losses = []
for _ in range(30):
    made = hyper(code)
    weights = {"weight": made[:3].view(1, 3), "bias": made[3:]}
    target.load_state_dict(weights)  # -
    loss = (target(x) - y).square().mean()  # -
    loss = (torch.func.functional_call(target, weights, (x,)) - y).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
