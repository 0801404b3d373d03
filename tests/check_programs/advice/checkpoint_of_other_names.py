# expect: GI373
# advice: Rename the keys of the checkpoint before checkpoint_of_other_names.py:12.
# lines: loaded=12
import torch
from torch import nn

torch.manual_seed(0)
trained = nn.ModuleDict({"first": nn.Linear(4, 8), "second": nn.Linear(8, 1)})
state = trained.state_dict()
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
state = {name.replace("first", "0").replace("second", "2"): value for name, value in state.items()}  # +
model.load_state_dict(state, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
