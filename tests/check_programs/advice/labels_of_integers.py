"""The loss of logits against labels that are integers."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(32, 6)
labels = (x.sum(1) > 0).long()
model = nn.Linear(6, 1)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
losses = []
for _ in range(20):
    scores = model(x).squeeze(1)
    loss = criterion(scores, labels)  # -
    loss = criterion(scores, labels.float())  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
# expect: GI001
# lines: failed=15
# why: labels is int64 [32], from 0 to 1, made at
# advice: pass labels.float()
