"""A helper makes an optimizer for each batch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)


def train_batch(x, y, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()


for _ in range(3):
    train_batch(torch.randn(8, 4), torch.randint(2, (8,)))
# expect: GI366 optimizer=11 step=15
