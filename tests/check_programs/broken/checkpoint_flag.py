"""The model is switched to eval mode for a look at it before backward, so dropout is gone the second time."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        h = self.layer(x)
        if self.training:
            h = nn.functional.dropout(h, 0.5)
        return torch.tanh(h)


torch.manual_seed(0)
model = Block()
loss = checkpoint(model, torch.randn(2, 4), use_reentrant=False).sum()
model.eval()
loss.backward()
# expect: GI104 first=16 again=17 backward=24
