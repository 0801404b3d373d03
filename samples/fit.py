"""Two steps of AdamW: where is the peak of memory, and what is it made of?

Try: gradinspect fit samples/fit.py --limit 512KiB
"""

import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(500, 32)
        self.body = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
        self.head = nn.Linear(32, 500)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)))


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    tokens = torch.randint(500, (4, 16))
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
