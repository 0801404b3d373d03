# expect: GI396
# advice: At weights_of_classes_for_examples.py:14, give the sampler a weight for each example: that of its class, as
# advice: weights[labels] is.
"""Three weights draw the first three examples again and again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
x, history = torch.randn(300, 8), []
y = (x[:, 0] > 1).long() + (x[:, 1] > 1).long()
weights = 1 / torch.bincount(y)
sampler = WeightedRandomSampler(weights, len(y))  # -
sampler = WeightedRandomSampler(weights[y], len(y))  # +
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for a, b in DataLoader(TensorDataset(x, y), batch_size=30, sampler=sampler):
    loss = nn.functional.cross_entropy(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
