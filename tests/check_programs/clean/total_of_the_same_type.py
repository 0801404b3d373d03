"""Losses are added up to a zero that takes its type from a prediction, by new_tensor(), new() or new_full()."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    scores = model(torch.randn(8, 4)).softmax(1)
    total = (scores.new_tensor(0.0), scores.new([0.0])[0], scores.new_full((), 0.0))[step % 3]
    for score in scores.unbind(1):
        total = total + (score - 0.5).square().mean()
    loss = total + scores.new_tensor(0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
