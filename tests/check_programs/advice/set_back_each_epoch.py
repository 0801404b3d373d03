# expect: GI380
# why: changes them, and set_back_each_epoch.py:18 sets them back before set_back_each_epoch.py:22.
# advice: Do that once, before the loop
# lines: written=18 step=24 backward=22
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
start = {name: value.clone() for name, value in model.state_dict().items()}
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, y = torch.randn(48, 6), torch.randint(3, (48,))
history = []
model.load_state_dict(start)  # +


for _ in range(8):
    model.load_state_dict(start)  # -
    loss = nn.functional.cross_entropy(model(x), y)
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()

    optimizer.step()
print("loss", history[0], history[-1])
