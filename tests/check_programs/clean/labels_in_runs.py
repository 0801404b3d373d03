"""Labels that are often the same within a batch, as they are to be."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
maker = nn.Linear(4, 8)
judge_optimizer = torch.optim.Adam(judge.parameters(), lr=0.01)
maker_optimizer = torch.optim.Adam(maker.parameters(), lr=0.01)


def told(scores, is_real):
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(is_real)))


for _ in range(6):
    real, made = torch.randn(16, 8) + 1, maker(torch.randn(16, 4))
    loss = told(judge(real), 1) + told(judge(made.detach()), 0)
    judge_optimizer.zero_grad()
    loss.backward()
    judge_optimizer.step()
    maker_optimizer.zero_grad()
    told(judge(made), 1).backward()
    maker_optimizer.step()

rare, kinds = nn.Linear(8, 2), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*rare.parameters(), *kinds.parameters()], lr=0.01)
order = torch.randperm(480)
x = torch.randn(480, 8)
is_rare = (torch.arange(480) % 12 == 0).long()[order]  # one of twelve
kind = (torch.arange(480) % 3)[order]
for rows in torch.arange(480).split(32):
    loss = F.cross_entropy(rare(x[rows]), is_rare[rows]) + F.cross_entropy(kinds(x[rows]), kind[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for row in range(40):  # one example after another
    loss = F.cross_entropy(kinds(x[row : row + 1]), kind[row : row + 1].div(2, rounding_mode="floor"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
