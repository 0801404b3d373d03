# expect: GI373
# advice: Add the prefix 'net.' to each name before checkpoint_without_its_prefix.py:12.
# lines: loaded=12
import torch
from torch import nn

torch.manual_seed(0)
trained = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
state = {name: value.clone() for name, value in trained.state_dict().items()}
model = nn.ModuleDict({"net": nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))})
state = {f"net.{name}": value for name, value in state.items()}  # +
model.load_state_dict(state, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model["net"](x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
