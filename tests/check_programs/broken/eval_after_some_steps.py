"""The model is evaluated after four steps, and stays in eval mode."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 3:
        model.eval()
        with torch.no_grad():
            model(torch.randn(4, 6))
# expect: GI371 eval=15 backward=12 step=13
