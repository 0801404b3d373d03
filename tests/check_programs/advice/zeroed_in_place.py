# expect: GI101
# advice: gate = gate.clone()
# never: zero in place
# never: Use zero
import torch
from torch import nn

torch.manual_seed(0)
layer, other = nn.Linear(3, 4), nn.Linear(3, 4)
optimizer = torch.optim.SGD([*layer.parameters(), *other.parameters()], lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    gate = torch.sigmoid(layer(x))
    h = gate * other(x)
    gate = gate.clone()  # +
    gate.zero_()
    loss = (h + gate - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
