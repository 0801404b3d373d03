# expect: GI373
# advice: Take the state dict that is under 'model' in the checkpoint before checkpoint_with_its_epoch.py:12.
# lines: loaded=12
import torch
from torch import nn

torch.manual_seed(0)
trained = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
checkpoint = {"epoch": 3, "model": trained.state_dict()}
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
checkpoint = checkpoint["model"]  # +
model.load_state_dict(checkpoint, strict=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
