# expect: GI601
# why: soft is added and subtracted again, so it cancels
# advice: soft + (hard - soft).detach(). Otherwise use hard alone.
# lines: zeroed=17 backward=23
import torch
from torch import nn

torch.manual_seed(0)
gate = nn.Linear(8, 4)
optimizer = torch.optim.Adam(gate.parameters(), lr=0.05)
x = torch.randn(64, 8)
history = []
for _ in range(30):
    soft = gate(x).sigmoid()
    hard = (soft > 0.5).float()

    mask = (hard - soft) + soft  # -
    mask = soft + (hard - soft).detach()  # +

    loss = (mask.sum(1) - 1).square().mean()
    history.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", history[0], history[-1])
