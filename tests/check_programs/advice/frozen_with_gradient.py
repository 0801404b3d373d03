# expect: GI376
# advice: Set .grad of these parameters to None after frozen_with_gradient.py:14
import torch
from torch import nn

torch.manual_seed(0)
stem, head = nn.Linear(3, 8), nn.Linear(8, 1)
layers = [*stem.parameters(), *head.parameters()]
optimizer, losses = torch.optim.Adam(layers, lr=0.02, weight_decay=0.1), []
x = torch.randn(32, 3)
for step in range(40):
    if step == 1:
        for p in stem.parameters():
            p.requires_grad = False
            p.grad = None  # +
    optimizer.zero_grad(set_to_none=False)
    loss = (head(torch.tanh(stem(x))) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
