"""A codebook is looked up by argmax; what chose the entry gets no gradient."""

import torch
from torch import nn

torch.manual_seed(0)
chooser = nn.Linear(8, 5)
codebook = nn.Embedding(5, 8)
optimizer = torch.optim.Adam([*chooser.parameters(), *codebook.parameters()])
for _ in range(2):
    x = torch.randn(4, 8)
    choice = chooser(x).softmax(-1).argmax(-1)
    loss = (codebook(choice) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=12 detached=12 used=13 backward=15 step=16
