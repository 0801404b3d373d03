"""Adversarial training: the attack runs in eval mode and adds to gradients that are cleared before the step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x, y = torch.randn(6, 4), torch.randint(2, (6,))
    model.eval()
    x_adv = x.clone().requires_grad_(True)
    nn.functional.cross_entropy(model(x_adv), y).backward()
    x_adv = (x + 0.1 * x_adv.grad.sign()).detach()
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x_adv), y)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
# options: --steps 5
