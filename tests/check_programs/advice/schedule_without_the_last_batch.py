# expect: GI001
# advice: The schedule has 6 steps, and the loop makes more: give it the number of steps that the loop makes, as
# advice: epochs * len(loader).
"""A last batch of fewer examples is a step, too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, history = torch.randn(70, 8), []
loader = DataLoader(TensorDataset(x, x[:, :1] * 2), batch_size=32, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 3 * (len(x) // 32)  # -
total = 3 * len(loader)  # +
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=total)
for x, y in [batch for _ in range(3) for batch in loader]:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
