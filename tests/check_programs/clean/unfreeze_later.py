"""Gradual unfreezing: the encoder starts frozen and joins the optimizer only at the second step."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 8), nn.Tanh())
classifier = nn.Linear(8, 3)
for param in encoder.parameters():
    param.requires_grad = False

optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    if epoch == 1:
        for param in encoder.parameters():
            param.requires_grad = True
        optimizer.add_param_group({"params": encoder.parameters(), "lr": 0.01})
    x, y = torch.randn(16, 6), torch.randint(3, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(classifier(encoder(x)), y)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
