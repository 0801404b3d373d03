"""A loop that adds up its validation loss, and with it every graph behind it: no_grad() was forgotten.

Try: gradinspect memory samples/growing.py --iterations 5
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
held_out = torch.randn(128, 16)
validation_loss = 0.0

for _ in range(8):
    loss = model(torch.randn(32, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    validation_loss += model(held_out).square().mean()

print(f"mean validation loss {validation_loss.item() / 8:.4f}")
