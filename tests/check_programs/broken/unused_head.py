"""The loss of the second head is computed and logged, and never added."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, boxes, classes = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*trunk.parameters(), *boxes.parameters(), *classes.parameters()])
for _ in range(2):
    h = torch.relu(trunk(torch.randn(5, 6)))
    box_loss = boxes(h).abs().mean()
    class_loss = nn.functional.cross_entropy(classes(h), torch.tensor([0, 1, 2, 0, 1]))
    loss = box_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI303 read=12 last=12 backward=15 step=16 optimizer=8
