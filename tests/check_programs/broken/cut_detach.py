"""Features are detached on their way to the classifier, to save memory, and the encoder never learns."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
classifier = nn.Linear(16, 3)
optimizer = torch.optim.SGD([*encoder.parameters(), *classifier.parameters()], lr=0.1)
for _ in range(3):
    features = encoder(torch.randn(4, 8))
    logits = classifier(features.detach())
    loss = nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=11 detached=12 backward=15 step=16
