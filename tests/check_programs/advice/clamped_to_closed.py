# expect: GI501
# options: --steps 1
# advice: 1 - 1e-6
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 3, bias=False)
nn.init.eye_(layer.weight)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
a = torch.cat([torch.eye(3), torch.tensor([[1.0, 1.0, 0.0]])])
losses = []
for _ in range(30):
    cosine = torch.cosine_similarity(layer(a), torch.eye(3)[[0, 1, 2, 0]], dim=1)
    angle = torch.acos(cosine.clamp(-1, 1))  # -
    angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))  # +
    loss = angle.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
