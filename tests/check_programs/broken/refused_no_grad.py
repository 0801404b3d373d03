"""The training step was decorated with no_grad, like the one for evaluation."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())


@torch.no_grad()
def forward(x):
    return model(x).pow(2).mean()


def train_step(x):
    loss = forward(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


train_step(torch.randn(4, 4))
# expect: GI302 read=13 detached=11 backward=19
