# expect: GI347
# advice: Divide the scores of cosines_without_temperature.py:15 by a temperature, such as 0.07.
"""A classifier by angles has no scale."""

import torch
from torch import nn
from torch.nn.functional import normalize

torch.manual_seed(0)
encoder, classes = nn.Linear(16, 32), nn.Parameter(torch.randn(40, 32))
optimizer, history = torch.optim.Adam([*encoder.parameters(), classes], lr=0.01), []
y = torch.arange(120) % 40
x = torch.randn(40, 16)[y] + 0.2 * torch.randn(120, 16)
for _ in range(20):
    scores = normalize(encoder(x)) @ normalize(classes).T  # -
    scores = normalize(encoder(x)) @ normalize(classes).T / 0.07  # +
    loss = nn.functional.cross_entropy(scores, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
