# expect: GI001
# advice: At inverse_of_mask.py:10, write ~hidden instead of 1 - hidden.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
x = torch.randn(32, 4)
hidden = torch.rand(32, 4) > 0.5
shown = 1 - hidden  # -
shown = ~hidden  # +
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = ((net(x) - x.flip(1)) * shown).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
