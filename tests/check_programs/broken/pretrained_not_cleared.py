"""A classifier is finetuned after a pretraining by gradients that nothing clears."""

import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 8))
decoder = nn.Linear(8, 6)
pretraining = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for _ in range(200):
    x = torch.randn(4, 6)
    pretraining.zero_grad()
    F.mse_loss(decoder(encoder(x)), x).backward()
    pretraining.step()

model = Classifier(encoder, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(20):
    x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
# expect: GI362 step=33 backward=32
