"""A precision schedule turns between the forward pass and backward."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer = nn.Linear(4, 4)
settings = {"dtype": torch.bfloat16}


def block(x):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings["dtype"] is torch.bfloat16):
        return torch.tanh(layer(x))


loss = checkpoint(block, torch.randn(2, 4), use_reentrant=False).float().sum()
settings["dtype"] = torch.float32
loss.backward()
# expect: GI104 first=14 again=14 backward=19
