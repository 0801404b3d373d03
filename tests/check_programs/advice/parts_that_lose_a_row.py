# expect: GI001
# advice: Rounding has lost examples: give the last part what is left, len(data) minus the others.
"""80% and 20% of 333 examples are 266 and 66."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x, history = torch.randn(333, 5), []
data = TensorDataset(x, x.sum(1, keepdim=True))
train, test = random_split(data, [int(0.8 * len(data)), int(0.2 * len(data))])  # -
train, test = random_split(data, [int(0.8 * len(data)), len(data) - int(0.8 * len(data))])  # +
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x, y in DataLoader(train, batch_size=32):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
