"""The first half of the model runs under a no_grad that was left over from evaluation."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()])


def features(x):
    with torch.no_grad():
        return body(x)


for _ in range(2):
    loss = head(features(torch.randn(4, 8))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=13 detached=12 used=17 backward=19 step=20
