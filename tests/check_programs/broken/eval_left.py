"""The evaluation after each epoch leaves the model in eval mode."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def evaluate():
    model.eval()
    with torch.no_grad():
        return model(torch.randn(2, 1, 8, 8)).argmax(1)


for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(4, 1, 8, 8)), torch.randint(3, (4,)))
    loss.backward()
    optimizer.step()
    evaluate()
# options: --steps 3
# expect: GI371 eval=12 backward=20 step=21
