"""Labels are integers, and the loss computes in their dtype."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 6)
labels = (x.sum(1) > 0).long()
model = nn.Linear(6, 1)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    scores = model(x).squeeze(1)
    loss = criterion(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI001 failed=14
