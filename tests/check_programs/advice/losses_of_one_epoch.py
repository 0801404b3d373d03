# expect: GI395
# advice: Move losses_of_one_epoch.py:19 into the loop of losses_of_one_epoch.py:16, and the optimizer's step with it.
"""backward() is indented less than the loop over batches."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(160, 8), []
for _ in range(3):
    for batch in x.split(16):
        optimizer.zero_grad()
        predicted = model(batch)
        loss = nn.functional.mse_loss(predicted, batch[:, :1] * 2)
        loss.backward()  # +
        optimizer.step()  # +
    loss.backward()  # -
    optimizer.step()  # -
    history.append(loss.item())
print("loss", history[0], history[-1])
